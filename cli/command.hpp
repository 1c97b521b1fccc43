#pragma once
// The subcommands. Each adds itself to the application and returns what to run when it is chosen; the result is the
// exit code.

#include <CLI/CLI.hpp>

#include <cstdint>
#include <functional>
#include <string>

namespace treadle::cli {

struct Command {
  CLI::App* app = nullptr;
  std::function<int()> run;
};

/// --backend, --isa and --threads of a command that runs a model.
void add_where_to_run(CLI::App& command, std::string& backend, std::string& isa, std::int64_t& threads);

Command add_compare(CLI::App& app);
Command add_verify(CLI::App& app);
Command add_explain(CLI::App& app);
Command add_backends(CLI::App& app);
Command add_peak(CLI::App& app);
Command add_run(CLI::App& app);
Command add_heatmap(CLI::App& app);
Command add_tokenize(CLI::App& app);  // this and the next where the tokenizers are built
Command add_embed(CLI::App& app);
Command add_generate(CLI::App& app);

}  // namespace treadle::cli
