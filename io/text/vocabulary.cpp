#include <treadle/io/error.hpp>
#include <treadle/io/text.hpp>
#include <treadle/io/text/vocabulary.hpp>

namespace treadle::text {

void Vocabulary::add(std::string_view token, std::int64_t id, std::string_view where) {
  const std::string name = std::string(where) + ": the token " + io::in_quotes(token);
  if (id < 0 || id >= most_ids)
    throw io::Error(name + " has id " + std::to_string(id) + "; ids go from 0 to " + std::to_string(most_ids - 1));
  const auto [at, added] = ids_.emplace(token, static_cast<std::int32_t>(id));
  if (!added)
    throw io::Error(name + " is there twice, with ids " + std::to_string(at->second) + " and " + std::to_string(id) +
                    "; a token has one id");
  const auto place = static_cast<std::size_t>(id);
  if (place < tokens_.size() && tokens_[place]) {
    const std::string other = io::in_quotes(*tokens_[place]);
    ids_.erase(at);
    throw io::Error(name + " has id " + std::to_string(id) + ", which " + other + " has already");
  }
  if (place >= tokens_.size()) tokens_.resize(place + 1);
  tokens_[place] = at->first;
}

std::optional<std::int32_t> Vocabulary::find(std::string_view token) const {
  const auto at = ids_.find(token);
  if (at == ids_.end()) return std::nullopt;
  return at->second;
}

std::optional<std::string_view> Vocabulary::token(std::int64_t id) const {
  if (id < 0 || id >= static_cast<std::int64_t>(tokens_.size())) return std::nullopt;
  return tokens_[static_cast<std::size_t>(id)];
}

}  // namespace treadle::text
