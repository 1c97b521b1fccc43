#include <treadle/backends/packed_store.hpp>

#include <utility>

namespace treadle {

namespace {
thread_local PackedStore* innermost = nullptr;
}

PackedStore::Scope::Scope(PackedStore& store) : before_(std::exchange(innermost, &store)) {}
PackedStore::Scope::~Scope() { innermost = before_; }

PackedStore* PackedStore::current() { return innermost; }

const PackedStore::Weights* PackedStore::find(std::string_view key) const {
  const auto found = weights_.find(key);
  return found == weights_.end() ? nullptr : &found->second;
}

void PackedStore::keep(std::string key, Weights weights) {
  weights_.insert_or_assign(std::move(key), std::move(weights));
}

}  // namespace treadle
