#include "page.hpp"

#include <treadle/backends/error.hpp>
#include <treadle/io/file.hpp>

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>

namespace treadle::cli {

namespace page_files {
extern const std::string_view html, style, script, charts;
}

namespace {

std::string charts() {
  namespace fs = std::filesystem;
  const char* named = std::getenv("TREADLE_CHART_JS");
  if (named == nullptr || *named == '\0') {
    if (!page_files::charts.empty()) return std::string(page_files::charts);
    for (const char* file :
         {"/usr/share/javascript/chart.js/chart.min.js", "/usr/share/javascript/chart.js/chart.umd.js"})
      if (std::error_code none; fs::is_regular_file(file, none)) return io::read_text(file);
    throw Error(
        "a page of HTML needs Chart.js, and neither this program nor this machine has it: install the Debian package "
        "libjs-chart.js, or name a chart.min.js in TREADLE_CHART_JS");
  }
  if (std::error_code none; !fs::is_regular_file(named, none))
    throw Error(fmt::format(
        "TREADLE_CHART_JS is '{}', which is no file: name a chart.min.js, such as that of the Debian package "
        "libjs-chart.js",
        named));
  std::string text = io::read_text(named);
  if (text.find("</script") != std::string::npos)
    throw Error(fmt::format("'{}' holds </script, so it cannot stand in a page", named));
  return text;
}

/// JSON that may stand inside a script element: plain ASCII, and no '<' that could end it.
std::string inside_script(const Json& data) {
  const std::string text = data.dump(-1, ' ', true, Json::error_handler_t::replace);
  std::string safe;
  safe.reserve(text.size());
  for (const char c : text) {
    if (c == '<')
      safe += "\\u003c";
    else
      safe += c;
  }
  return safe;
}

}  // namespace

void require_charts() { charts(); }

std::string make_page(const Json& data) {
  std::string page;
  std::string_view rest = page_files::html;
  for (std::size_t open = rest.find("{{"); open != std::string_view::npos; open = rest.find("{{")) {
    const std::size_t close = rest.find("}}", open);
    const std::string_view part = rest.substr(open + 2, close - open - 2);
    page += rest.substr(0, open);
    page += part == "style"    ? std::string(page_files::style)
            : part == "charts" ? charts()
            : part == "script" ? std::string(page_files::script)
                               : inside_script(data);
    rest.remove_prefix(close + 2);
  }
  return page += rest;
}

}  // namespace treadle::cli
