// treadle: compare attention variants, verify backends against cases, explain models, show backends and the machine's
// peak, turn text into token ids.
//
// Exit codes: 0 done; 1 a case failed (verify); 2 the command line or its files are wrong: one sentence on stderr says
// what would be right; 130 interrupted.

#include "arguments.hpp"
#include "command.hpp"
#include "machine.hpp"

#include <treadle/backends/error.hpp>

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <new>

namespace {

using namespace treadle::cli;

constexpr int bad_input = 2;

int fail(std::string_view command, std::string_view sentence) {
  fmt::print(stderr, "treadle{}{}: {}\n", command.empty() ? "" : " ", command, sentence);
  return bad_input;
}

/// Every option that `app` takes, as it is typed.
std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* o : app.get_options())
    for (const std::string& name : o->get_lnames()) names.push_back("--" + name);
  return names;
}

std::string subcommand_names(const std::vector<Command>& commands, std::vector<std::string>* list = nullptr) {
  std::vector<std::string> names;
  for (const Command& c : commands) names.push_back(c.app->get_name());
  if (list != nullptr) *list = names;
  return join(names);
}

/// One sentence for what CLI11 could not parse. `commands` are the application's.
std::string sentence_for(const CLI::ParseError& e, const CLI::App& app, const std::vector<Command>& commands, int argc,
                         char** argv) {
  const CLI::App* used = &app;
  for (const Command& c : commands)
    if (c.app->parsed()) used = c.app;
  const bool no_command = dynamic_cast<const CLI::RequiredError*>(&e) != nullptr && used == &app;
  if (no_command && argc < 2)
    return fmt::format("say what to do: the commands are {} (`treadle --help`)", subcommand_names(commands));
  if (no_command || dynamic_cast<const CLI::ExtrasError*>(&e) != nullptr) {
    const auto extras = app.remaining(true);
    const std::string extra = no_command ? argv[1] : extras.empty() ? "" : extras.front();
    if (extra.rfind('-', 0) == 0) {
      const auto names = option_names(*used);
      const std::string name = extra.substr(0, extra.find('='));
      const std::string guess = nearest(name, names);
      return fmt::format("unknown option '{}': {}", name,
                         guess.empty() ? "the options are " + join(names) : "did you mean " + guess + "?");
    }
    if (used == &app) {
      std::vector<std::string> names;
      const std::string all = subcommand_names(commands, &names), guess = nearest(extra, names);
      return fmt::format("unknown command '{}': {}", extra,
                         guess.empty() ? "the commands are " + all : "did you mean " + guess + "?");
    }
    return fmt::format(
        "unexpected argument '{}': lists are written with commas, and `treadle {} --help` shows the options", extra,
        used->get_name());
  }
  std::string text = e.what();
  for (char& c : text)
    if (c == '\n') c = ' ';
  return fmt::format("{} (`treadle{}{} --help` shows the options)", text, used == &app ? "" : " ",
                     used == &app ? "" : used->get_name());
}

int run(int argc, char** argv) {
  CLI::App app(
      "Compile-time expression graphs for Transformers: compare attention variants, check backends, look inside "
      "models.",
      "treadle");
  app.set_version_flag("--version", fmt::format("treadle {} ({}, {})", version(), commit(), compiler()));
  app.require_subcommand(1);
  app.footer("`treadle COMMAND --help` shows the options of a command.");
  const std::vector<Command> commands = {add_compare(app),  add_verify(app), add_explain(app), add_backends(app),
                                         add_peak(app),     add_run(app),    add_heatmap(app),
#ifdef TREADLE_TEXT
                                         add_tokenize(app), add_embed(app),  add_generate(app)
#endif
  };
  std::string command;
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {
    return app.exit(e);  // --help, --version
  } catch (const CLI::ParseError& e) {
    for (const Command& c : commands)
      if (c.app->parsed()) command = c.app->get_name();
    return fail(command, sentence_for(e, app, commands, argc, argv));
  }
  try {
    for (const Command& c : commands) {
      if (!c.app->parsed()) continue;
      command = c.app->get_name();
      return c.run();
    }
  } catch (const std::bad_alloc&) {
    return fail(command, "there is not enough memory for this: use smaller lengths, fewer heads or a smaller batch");
  } catch (const std::exception& e) {
    std::fflush(stdout);
    return fail(command, e.what());
  }
  return bad_input;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& e) {
    return fail("", e.what());
  } catch (...) {
    return fail("", "an unknown error ended the program; please report what you ran");
  }
}
