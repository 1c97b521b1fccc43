#include "variants.hpp"

#include "arguments.hpp"
#include "columns.hpp"
#include "variant_families.hpp"

#include <treadle/backends/error.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace treadle::cli {

namespace {

/// "local[:C[,L]]"
std::string spelling(const VariantFamily& f, bool causal) {
  std::string text;
  for (std::size_t i = 0; i < f.numbers.size(); ++i) {
    const bool optional = i >= f.least_given;
    text += fmt::format("{}{}{}", optional ? "[" : "", i == 0 ? "" : ",", f.numbers[i].word[0]);
    if (optional) text += "]";
  }
  if (!text.empty()) text = f.required ? ":" + text : "[:" + text + "]";
  return fmt::format("{}{}{}", f.kind, text, causal ? ":causal" : "");
}

std::string defaults(const VariantFamily& f) {
  std::string text;
  for (const VariantNumber& n : f.numbers) text += fmt::format("{}{}", text.empty() ? "" : ",", n.otherwise);
  return text;
}

/// "local:CHUNK,LOOKBACK such as local:64,1"
std::string example(const VariantFamily& f) {
  std::string words;
  for (const VariantNumber& n : f.numbers) words += fmt::format("{}{}", words.empty() ? "" : ",", n.word);
  return fmt::format("{0}:{1} such as {0}:{2}", f.kind, words, defaults(f));
}

/// `f(family, causal)` for each form.
template <class F>
void each_form(F f) {
  for (const VariantFamily& family : variant_families()) {
    f(family, false);
    if (!family.causal_cost.empty()) f(family, true);
  }
}

[[noreturn]] void unknown(std::string_view text) {
  std::vector<std::string> spellings;
  each_form([&](const VariantFamily& f, bool causal) { spellings.push_back(spelling(f, causal)); });
  throw Error(fmt::format("unknown variant '{}': the variants are {}", text, join(spellings)));
}

std::vector<std::int64_t> numbers(const VariantFamily& f, std::string_view text, std::string_view given) {
  std::vector<std::int64_t> values;
  for (const VariantNumber& n : f.numbers) values.push_back(n.otherwise);
  const auto parts = given.empty() ? std::vector<std::string>{} : split(given);
  if (parts.empty() && !f.required) return values;
  if (parts.size() < f.least_given || parts.size() > values.size())
    throw Error(fmt::format("variant '{}' has {} number{}: write {}", text, parts.size(), parts.size() == 1 ? "" : "s",
                            example(f)));
  for (std::size_t i = 0; i < parts.size(); ++i)
    values[i] = parse_integer(parts[i], fmt::format("the {} of variant '{}'", f.numbers[i].name, text),
                              f.numbers[i].least, f.numbers[i].most);
  return values;
}

std::string name_of(const VariantFamily& f, std::span<const std::int64_t> values, bool causal) {
  std::string text;
  for (const std::int64_t v : values) text += fmt::format("{}{}", text.empty() ? ":" : ",", v);
  return fmt::format("{}{}{}", f.kind, text, causal ? ":causal" : "");
}
}  // namespace

double Variant::own_bytes(const AttentionShape& s) const {
  const auto n = static_cast<double>(s.length);
  double bytes = 4 * n * n * static_cast<double>(s.batch * s.heads * scores_held);
  if (table) {
    const auto blocks = static_cast<double>(table->blocks(s.length));
    bytes += 4 * blocks * blocks;  // the model's, the measure's, and a summary of minima and maxima
  }
  return bytes;
}

Variant parse_variant(std::string_view text, std::uint64_t seed) {
  const std::size_t colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  std::string_view given = colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
  const auto families = variant_families();
  const auto f = std::find_if(families.begin(), families.end(), [&](const VariantFamily& x) { return x.kind == kind; });
  if (f == families.end() || (colon != std::string_view::npos && given.empty())) unknown(text);
  // "causal" stands last, behind a colon: with a comma it would be a variant of its own.
  const std::size_t last = given.rfind(':');
  const bool causal =
      !f->causal_cost.empty() && (last == std::string_view::npos ? given : given.substr(last + 1)) == "causal";
  if (causal) given = last == std::string_view::npos ? std::string_view() : given.substr(0, last);
  if (f->numbers.empty() && !given.empty()) unknown(text);
  const std::vector<std::int64_t> values = numbers(*f, text, given);
  Variant v = f->make(values, causal, seed);
  v.name = name_of(*f, values, causal);
  return v;
}

std::vector<Variant> parse_variants(std::string_view text, std::uint64_t seed) {
  std::vector<std::string> names;
  if (text == "all") {
    each_form([&](const VariantFamily& f, bool causal) {
      names.push_back(fmt::format("{}{}{}", f.kind, f.required ? ":" + defaults(f) : "", causal ? ":causal" : ""));
    });
  } else {
    for (const std::string& part : split(text)) {
      const std::string digits = part.substr(0, part.find(':'));  // "1:causal" ends "local:64,1:causal"
      const bool number = !digits.empty() && digits.find_first_not_of("-0123456789") == std::string::npos;
      if (number && !names.empty() && names.back().find(':') != std::string::npos) {
        names.back() += "," + part;
      } else {
        names.push_back(part);
      }
    }
  }
  std::vector<Variant> variants;
  for (const std::string& name : names) {
    if (name.empty())
      throw Error(fmt::format("--variants is '{}': write a list such as dense,window:128,128,linear, or all", text));
    Variant v = parse_variant(name, seed);
    const bool known =
        std::any_of(variants.begin(), variants.end(), [&](const Variant& o) { return o.name == v.name; });
    if (!known) variants.push_back(std::move(v));
  }
  return variants;
}

std::string variant_help() {
  std::string text;
  each_form([&](const VariantFamily& f, bool causal) {
    text += fmt::format("{}  {:<28}{}{}", text.empty() ? "" : "\n", spelling(f, causal),
                        causal ? "the same over the keys up to the query" : f.meaning,
                        causal || f.numbers.empty() || f.required ? "" : fmt::format(" ({})", defaults(f)));
  });
  return text;
}

std::string variant_list() {
  std::string text = fmt::format("{:<28}{:<10}{:<20}{}\n", "variant", "default", "pairs", "source");
  each_form([&](const VariantFamily& f, bool causal) {
    text += fmt::format("{:<28}{:<10}", spelling(f, causal), f.numbers.empty() || f.required ? "-" : defaults(f)) +
            left(std::string(causal ? f.causal_cost : f.cost), 20) + std::string(f.source) +
            fmt::format("\n{:4}{}\n", "", causal ? "the same over the keys up to the query" : f.meaning);
  });
  return text +
         "\npairs: (query, key) pairs of a head over N tokens, to first order; the linear family keeps a state of "
         "head\n"
         "size D × D instead. --variants takes all, or a list with commas; numbers after a comma belong to the "
         "variant\n"
         "before.\n";
}

}  // namespace treadle::cli
