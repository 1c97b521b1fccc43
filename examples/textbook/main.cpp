// textbook: the theory of attention, number by number. Every result is computed by a model on the chosen backend and
// stands beside what the text says.
//
// Exit codes: 0 everything agrees; 1 something differs; 2 the command line is wrong.

#include "chapter.hpp"

#include <treadle/backends/backend.hpp>
#include <treadle/backends/error.hpp>
#include <treadle/backends/kernel.hpp>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <exception>

namespace {

using namespace textbook;

struct Typed {
  Target target{"tbb", ""};
  std::vector<std::string> names;
  bool list = false;
};

std::vector<const Chapter*> chosen(const std::vector<std::string>& names) {
  std::vector<const Chapter*> list;
  for (const Chapter* c : chapters)
    if (names.empty() || std::find(names.begin(), names.end(), c->name) != names.end()) list.push_back(c);
  for (const std::string& name : names) {
    if (std::none_of(chapters.begin(), chapters.end(), [&](const Chapter* c) { return c->name == name; })) {
      std::string all;
      for (const Chapter* c : chapters) all += (all.empty() ? "" : ", ") + std::string(c->name);
      throw treadle::Error("there is no chapter '" + name + "'; the chapters are " + all);
    }
  }
  return list;
}

int run_chapters(const Typed& typed) {
  const auto list = chosen(typed.names);
  if (typed.list) {
    for (const Chapter* c : list) fmt::print("{:<13} {} ({})\n", c->name, c->title, c->source);
    return 0;
  }
  const bool has_isas = treadle::find_backend(typed.target.backend).has_isas;
  const std::string isa =
      has_isas ? typed.target.isa.empty() ? treadle::kernel::best_table().isa : typed.target.isa : "";
  int lines = 0, agreeing = 0;
  for (const Chapter* c : list) {
    Page page;
    c->write(page, typed.target);  // throws if the target is wrong, before anything is printed
    if (c == list.front()) {
      fmt::print("The theory of attention, computed by Treadle on backend {}{}{}.\n", typed.target.backend,
                 has_isas ? ", ISA " : "", isa);
      fmt::print("Within \"½ digit\": the number rounds to what the text prints.\n");
    }
    const auto number = std::find(chapters.begin(), chapters.end(), c) - chapters.begin() + 1;
    fmt::print("\n{}. {}\n{}\n  {}\n\n{}", number, c->title, indented(c->equation), c->source, page.text());
    std::fflush(stdout);
    lines += page.lines();
    agreeing += page.agreeing();
  }
  fmt::print("\n{} of {} agree\n", agreeing, lines);
  return agreeing == lines ? 0 : 1;
}

int fail(std::string_view sentence) {
  std::fflush(stdout);
  fmt::print(stderr, "textbook: {}\n", sentence);
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    Typed typed;
    CLI::App app("The theory of attention, worked: each result beside what the text says.", "textbook");
    app.add_option("--backend", typed.target.backend, "Where the models run: " + treadle::backend_names())
        ->capture_default_str();
    app.add_option("--isa", typed.target.isa, "Instruction set: portable, avx2, avx512; default: the best");
    app.add_flag("--list", typed.list, "Name the chapters and stop");
    app.add_option("chapters", typed.names, "Only these chapters; default: all");
    app.footer("Exit codes: 0 everything agrees; 1 something differs; 2 the command line is wrong.");
    try {
      app.parse(argc, argv);
    } catch (const CLI::Success& e) {
      return app.exit(e);
    } catch (const CLI::ParseError& e) {
      return fail(fmt::format("{} (`textbook --help` shows the options)", e.what()));
    }
    return run_chapters(typed);
  } catch (const std::exception& e) {
    return fail(e.what());
  }
}
