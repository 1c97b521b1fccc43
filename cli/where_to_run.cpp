#include "command.hpp"

namespace treadle::cli {

void add_where_to_run(CLI::App& command, std::string& backend, std::string& isa, std::int64_t& threads) {
  command.add_option("--backend", backend, "reference, simd or tbb (default)")->type_name("NAME");
  command.add_option("--isa", isa, "One of `treadle backends`; the best by default")->type_name("NAME");
  command.add_option("--threads", threads, "Threads of tbb; 0: all (default)")
      ->check(CLI::Range(0, 4096))
      ->type_name("N");
}

}  // namespace treadle::cli
