#include <treadle/backends/inlined.hpp>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <vector>

namespace treadle::kernel {
namespace {

struct Registry {
  std::mutex mutex;
  std::vector<const ModelTable*> tables;
};
/// Never destroyed: other static objects sign off at the end of the program.
Registry& registry() {
  static Registry& r = *new Registry;
  return r;
}

}  // namespace

RegisteredModels::RegisteredModels(std::span<const ModelTable* const> tables) : tables_(tables) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  r.tables.insert(r.tables.end(), tables.begin(), tables.end());
}

RegisteredModels::~RegisteredModels() {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  for (const ModelTable* t : tables_)
    if (const auto found = std::find(r.tables.begin(), r.tables.end(), t); found != r.tables.end())
      r.tables.erase(found);
}

ScoreHook find_inlined(const char* isa, scalar::View functions, int root) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  if (r.tables.empty()) return nullptr;
  scalar::Pool pool;  // in an empty pool equal functions look the same
  scalar::import(pool, functions, root);
  for (const ModelTable* t : r.tables) {
    if (std::strcmp(t->isa, isa) != 0) continue;
    for (const InlinedScore& s : t->scores)
      if (std::ranges::equal(s.nodes, pool.nodes) && std::ranges::equal(s.names, pool.names)) return s.hook;
  }
  return nullptr;
}

}  // namespace treadle::kernel
