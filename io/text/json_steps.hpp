#pragma once
// The steps that a tokenizer.json lists. Each function adds what its part asks for (nothing for null), and throws
// io::Error with `where` and the name of what is not supported.

#include <treadle/io/text/parts.hpp>

#include <nlohmann/json_fwd.hpp>

namespace treadle::text {

void read_normalizer(const nlohmann::json& part, std::vector<NormalizeStep>& steps, const std::string& where);
void read_pre_tokenizer(const nlohmann::json& part, std::vector<SplitStep>& steps, const std::string& where);
/// What goes around a text; looks tokens up in the vocabulary.
void read_post_processor(const nlohmann::json& part, Parts& parts, const std::string& where);
void read_decoder(const nlohmann::json& part, std::vector<DecodeStep>& steps, const std::string& where);

}  // namespace treadle::text
