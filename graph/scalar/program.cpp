#include <treadle/graph/scalar/program.hpp>

#include <treadle/graph/scalar/interval.hpp>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>

namespace treadle::scalar {

namespace {

Class class_of(const Node& n) {
  if (n.uses & uses_score) return Class::both;
  const bool q = n.uses & uses_q, k = n.uses & uses_k;
  return q && k ? Class::both : q ? Class::q_only : k ? Class::k_only : Class::constant;
}

std::int32_t element_bytes(Type type) { return type == Type::integer ? 8 : 4; }

/// Every node has its own place, but `both` nodes share registers: they are rows × lanes large.
void place_values(TileProgram& program) {
  const std::size_t count = program.nodes.size();
  std::vector<std::size_t> last_use(count);
  for (std::size_t i = 0; i < count; ++i) {
    last_use[i] = i;
    for (int j = 0; j < 3; ++j)
      if (const int child = program.nodes[i].child(j); child >= 0) last_use[static_cast<std::size_t>(child)] = i;
  }
  last_use[count - 1] = count;
  std::vector<std::int32_t> free[2];  // by element size: 4, 8 bytes
  std::int32_t end = 0;
  program.offsets.assign(count, 0);
  for (std::size_t i = 0; i < count; ++i) {
    const std::int32_t bytes = element_bytes(program.nodes[i].type);
    std::vector<std::int32_t>& registers = free[bytes / 8];
    const Class c = program.classes[i];
    if (c == Class::both && !registers.empty()) {
      program.offsets[i] = registers.back();
      registers.pop_back();
    } else {
      program.offsets[i] = end;
      const std::int32_t lanes = c == Class::constant ? 16 : TileProgram::max_lanes;
      end += bytes * lanes * (c == Class::both ? TileProgram::max_rows : 1);
    }
    for (int j = 0; j < 3; ++j) {
      const int child = program.nodes[i].child(j);
      if (child < 0 || last_use[static_cast<std::size_t>(child)] != i ||
          program.classes[static_cast<std::size_t>(child)] != Class::both)
        continue;
      // Used twice by this node: free it once.
      if ((j > 0 && child == program.nodes[i].a) || (j > 1 && child == program.nodes[i].b)) continue;
      free[element_bytes(program.nodes[static_cast<std::size_t>(child)].type) / 8].push_back(
          program.offsets[static_cast<std::size_t>(child)]);
    }
  }
  program.value_bytes = static_cast<std::size_t>(end);
}

void bind_tables(TileProgram& program, std::span<const Table> tables, bool all) {
  for (TileProgram::Slot& slot : program.slots) {
    const std::string_view name = slot.name(program.names);
    const auto found = std::find_if(tables.begin(), tables.end(), [&](const Table& t) { return t.name == name; });
    if (found != tables.end())
      slot.table.bind(found->view, name, program.type() == Type::boolean);
    else if (all)
      throw std::invalid_argument("table '" + std::string(name) + "' is not bound");
  }
}

/// Whether an integer may leave 32 bits anywhere in the domain.
bool needs_wide_lanes(const TileProgram& program, std::vector<Interval>& values) {
  const Extents& e = program.extents;
  // Kernels pad strips, so queries and keys may be evaluated a little past the end.
  const Box box{0, std::max<std::int64_t>(e.batch, 1), 0, std::max<std::int64_t>(e.heads, 1),
                0, e.q_len + TileProgram::max_lanes,   0, e.k_len + TileProgram::max_lanes};
  intervals_of_queries(program, box, values.data());
  intervals_of_keys(program, box, values.data());
  for (std::size_t i = 0; i < program.nodes.size(); ++i)
    if (program.nodes[i].type == Type::integer && (values[i].lo < std::numeric_limits<std::int32_t>::min() ||
                                                   values[i].hi > std::numeric_limits<std::int32_t>::max()))
      return true;
  return false;
}

}  // namespace

bool tile_supported(View view, int root) {
  // Children precede parents; what the root does not reach is in a pool for somebody else.
  std::vector<char> reached(static_cast<std::size_t>(root) + 1, 0);
  reached[static_cast<std::size_t>(root)] = 1;
  for (int i = root; i >= 0; --i) {
    if (!reached[static_cast<std::size_t>(i)]) continue;
    const Op op = view[i].op;
    if (op == Op::sum || op == Op::query_value || op == Op::key_value || op == Op::feature) return false;
    for (int j = 0; j < 3; ++j)
      if (const int child = view[i].child(j); child >= 0) reached[static_cast<std::size_t>(child)] = 1;
  }
  return true;
}

TileProgram compile(View view, int root, const Extents& extents, std::span<const Table> tables) {
  if (!tile_supported(view, root)) throw std::invalid_argument("a sum over features is not evaluated by tiles");
  Pool pool;
  const int last = import(pool, view, root);
  TileProgram program;
  program.nodes.assign(pool.nodes.begin(), pool.nodes.begin() + last + 1);
  program.names = pool.names;
  for (const Node& n : program.nodes) {
    program.classes.push_back(class_of(n));
    program.tables.push_back(-1);
    if (n.op != Op::lookup) continue;
    const std::int32_t rank = n.b >= 0 ? 2 : 1;
    const auto same = [&](const TileProgram::Slot& s) {
      return s.name_first == n.name_first && s.name_size == n.name_size && s.table.type == n.type &&
             s.table.rank == rank;
    };
    auto slot = std::find_if(program.slots.begin(), program.slots.end(), same);
    if (slot == program.slots.end()) {
      program.slots.push_back({n.name_first, n.name_size, {}});
      slot = program.slots.end() - 1;
      slot->table.type = n.type;
      slot->table.rank = rank;
    }
    program.tables.back() = static_cast<std::int32_t>(slot - program.slots.begin());
  }
  place_values(program);
  program.scratch.resize(program.nodes.size());
  program.extents = extents;
  bind_tables(program, tables, true);
  program.wide = needs_wide_lanes(program, program.scratch);
  return program;
}

void rebind(TileProgram& program, const Extents& extents, std::span<const Table> tables) {
  program.extents = extents;
  bind_tables(program, tables, false);
  program.wide = needs_wide_lanes(program, program.scratch);
}

}  // namespace treadle::scalar
