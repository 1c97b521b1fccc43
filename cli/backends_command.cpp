// `treadle backends`: what is compiled in, and what this CPU can run.

#include "arguments.hpp"
#include "command.hpp"
#include "machine.hpp"

#include <treadle/backends/backend.hpp>
#include <treadle/backends/kernel.hpp>

#include <fmt/format.h>

namespace treadle::cli {

namespace {
int run() {
  const Machine m = machine();
  fmt::print("{:<12} {:<5} {:<8} {:<8} {}\n", "backend", "isas", "threads", "float64", "");
  const auto yes = [](bool b) { return b ? "yes" : "no"; };
  for (const BackendInfo& b : backends())
    fmt::print("{:<12} {:<5} {:<8} {:<8} {}\n", b.name, yes(b.has_isas), yes(b.threads), yes(b.float64), b.description);
  fmt::print("\n{:<12} {:<9} {:<9} {}\n", "isa", "compiled", "this CPU", "");
  const std::string_view best = kernel::best_table().isa;
  for (int i = 0; i < kernel::isa_count; ++i) {
    const kernel::IsaInfo& isa = kernel::isa_list()[i];
    const std::string_view note = best == isa.name ? "used unless --isa or TREADLE_ISA says otherwise" : "";
    fmt::print("{:<12} {:<9} {:<9} {}\n", isa.name, yes(isa.compiled), yes(isa.supported), note);
  }
  fmt::print("\n{}, {} core{}\n", m.cpu, m.cores, m.cores == 1 ? "" : "s");
  return 0;
}
}  // namespace

Command add_backends(CLI::App& app) {
  CLI::App* sub = app.add_subcommand("backends", "List the backends and ISAs, and whether this CPU can run them.");
  return {sub, run};
}

}  // namespace treadle::cli
