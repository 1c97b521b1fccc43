#pragma once
// Cases whose calls open files: what `treadle verify` does for them.

#include <nlohmann/json.hpp>

#include <string>

namespace treadle::cli {

/// How many of a case's files were accepted or rejected as the case says.
struct Verdicts {
  int agree = 0, files = 0;
  std::string problem;  ///< the first that was not, by name; empty if there is none
};

/// Opens the files of a `safetensors_open` case: attributes.files, each {name, hex, verdict: accept or reject}. Throws
/// Error where the attributes are not of this form.
Verdicts open_safetensors(const nlohmann::json& attributes);

}  // namespace treadle::cli
