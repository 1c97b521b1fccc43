#include <treadle/io/text/steps.hpp>

namespace treadle::text {

namespace {

std::string cleaned(std::string_view text) {
  std::string result;
  each_code_point(text, [&](char32_t c, std::string_view bytes) {
    if (c == 0 || c == 0xFFFD || is_bert_control(c)) return;
    if (is_white_space(c))
      result += ' ';
    else
      result += bytes;
  });
  return result;
}

std::string spaced_ideographs(std::string_view text) {
  std::string result;
  each_code_point(text, [&](char32_t c, std::string_view bytes) {
    if (is_cjk(c))
      result.append(" ").append(bytes).append(" ");
    else
      result += bytes;
  });
  return result;
}

template <typename Drop>
std::string without(std::string_view text, Drop drop) {
  std::string result;
  each_code_point(text, [&](char32_t c, std::string_view bytes) {
    if (!drop(c)) result += bytes;
  });
  return result;
}

}  // namespace

NormalizeStep bert_normalizer(BertNormalizer options) {
  return [options](std::string_view text) {
    std::string result(text);
    if (options.clean_text) result = cleaned(result);
    if (options.handle_chinese_chars) result = spaced_ideographs(result);
    if (options.strip_accents) result = without(normalize(result, Form::nfd), is_bert_accent);
    if (options.lowercase) result = lower_case(result);
    return result;
  };
}

NormalizeStep lowercase() { return lower_case; }

NormalizeStep unicode_form(Form form) {
  return [form](std::string_view text) { return normalize(text, form); };
}

NormalizeStep strip_accents() {
  return [](std::string_view text) { return without(text, is_mark); };
}

NormalizeStep strip_white_space(bool left, bool right) {
  return [left, right](std::string_view text) {
    std::size_t start = text.size(), end = 0;  // of what is no white space
    std::size_t at = 0;
    each_code_point(text, [&](char32_t c, std::string_view bytes) {
      if (!is_white_space(c)) {
        start = std::min(start, at);
        end = at + bytes.size();
      }
      at += bytes.size();
    });
    if (start >= end) return std::string(left || right ? std::string_view() : text);
    if (!left) start = 0;
    if (!right) end = text.size();
    return std::string(text.substr(start, end - start));
  };
}

NormalizeStep prepend(std::string start) {
  return [start = std::move(start)](std::string_view text) {
    return text.empty() ? std::string() : start + std::string(text);
  };
}

NormalizeStep replace_all(std::string what, std::string with) {
  return [what = std::move(what), with = std::move(with)](std::string_view text) {
    if (what.empty()) return std::string(text);
    std::string result;
    std::size_t at = 0;
    for (std::size_t found; (found = text.find(what, at)) != std::string_view::npos; at = found + what.size())
      result.append(text, at, found - at).append(with);
    return result.append(text, at);
  };
}

NormalizeStep replace_all(Regex what, std::string with) {
  return [what = std::move(what), with = std::move(with)](std::string_view text) {
    std::string result;
    std::size_t at = 0;
    for (const auto& [start, end] : what.matches(text)) {
      result.append(text, at, start - at).append(with);
      at = end;
    }
    return result.append(text, at);
  };
}

}  // namespace treadle::text
