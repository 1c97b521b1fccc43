#pragma once
// Packed weights that several models share: variants of one checkpoint, or the same model with another output.
//
//   PackedStore store;
//   const PackedStore::Scope scope(store);  // from here on, in this thread
//   a.bind_dims(…);                         // packs
//   b.bind_dims(…);                         // finds what a has packed, where both have the same parameter's memory

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace treadle {

/// Weights are known by the address and strides of the parameter's memory and the ISA, so that memory must stay as it
/// is while the store lives. Models keep what they use: the store may go before them. For one thread.
class PackedStore {
 public:
  struct Weights {
    std::shared_ptr<void> data;
    std::size_t bytes = 0;
  };

  /// Models that are bound in this thread while this lives use the store. Scopes nest; the innermost one counts.
  class Scope {
   public:
    explicit Scope(PackedStore& store);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    PackedStore* before_;
  };

  /// The store of the innermost scope in this thread; nullptr outside of any.
  static PackedStore* current();

  const Weights* find(std::string_view key) const;
  void keep(std::string key, Weights weights);
  std::size_t size() const { return weights_.size(); }

 private:
  std::map<std::string, Weights, std::less<>> weights_;
};

}  // namespace treadle
