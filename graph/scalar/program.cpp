#include <treadle/graph/scalar/program.hpp>

#include <treadle/graph/scalar/interval.hpp>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>

namespace treadle::scalar {

namespace {

std::int32_t element_bytes(Type type) { return type == Type::integer ? 8 : 4; }

/// Distances between positions, as many scores hold them, are one step instead of three: finds them, and says which
/// nodes are no step of their own, as nobody else reads them.
std::vector<bool> find_distances(TileProgram& program) {
  const std::vector<Node>& nodes = program.nodes;
  const auto at = [&](std::int32_t i) -> const Node& { return nodes[static_cast<std::size_t>(i)]; };
  std::vector<int> readers(nodes.size());
  for (const Node& n : nodes)
    for (int j = 0; j < 3; ++j)
      if (const int child = n.child(j); child >= 0) ++readers[static_cast<std::size_t>(child)];
  std::vector<bool> absorbed(nodes.size());
  program.distances.assign(nodes.size(), -1);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].op != Op::number || program.classes[i] != Class::both) continue;
    const std::int32_t size = nodes[i].a;
    if (at(size).op != Op::abs || at(at(size).a).op != Op::sub) continue;
    const std::int32_t difference = at(size).a;
    if (readers[static_cast<std::size_t>(size)] > 1 || readers[static_cast<std::size_t>(difference)] > 1) continue;
    if ((nodes[i].uses & uses_feature) != 0) continue;
    program.distances[i] = difference;
    absorbed[static_cast<std::size_t>(size)] = absorbed[static_cast<std::size_t>(difference)] = true;
  }
  return absorbed;
}

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
  for (std::size_t i = 0; i < count; ++i) {  // what a distance reads by itself
    if (program.distances[i] < 0) continue;
    const Node& n = program.nodes[static_cast<std::size_t>(program.distances[i])];
    for (const std::int32_t child : {n.a, n.b})
      last_use[static_cast<std::size_t>(child)] = std::max(last_use[static_cast<std::size_t>(child)], i);
  }
  // What a sum's terms are made of is needed until the last feature.
  for (std::size_t i = 0; i < count; ++i)
    for (const std::int32_t part : program.body(static_cast<int>(i))) {
      const Node& n = program.nodes[static_cast<std::size_t>(part)];
      last_use[static_cast<std::size_t>(part)] = std::max(last_use[static_cast<std::size_t>(part)], i);
      for (int j = 0; j < 3; ++j)
        if (const int child = n.child(j); child >= 0)
          last_use[static_cast<std::size_t>(child)] = std::max(last_use[static_cast<std::size_t>(child)], i);
    }
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
      // A unit of constants; one more of keys, as sums compute whole units from any key on.
      const std::int32_t lanes = c == Class::constant ? TileProgram::max_unit
                                 : c == Class::k_only ? TileProgram::max_lanes + TileProgram::max_unit
                                                      : TileProgram::max_lanes;
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

/// The nodes below each sum that depend on the feature.
void find_bodies(TileProgram& program) {
  for (std::size_t i = 0; i < program.nodes.size(); ++i) {
    if (program.nodes[i].op == Op::sum) {
      std::vector<char> reached(i, 0);
      reached[static_cast<std::size_t>(program.nodes[i].a)] = 1;
      for (std::size_t part = i; part-- > 0;)
        for (int j = 0; j < 3; ++j)
          if (const int child = program.nodes[part].child(j); child >= 0 && reached[part] != 0)
            reached[static_cast<std::size_t>(child)] = 1;
      for (std::size_t part = 0; part < i; ++part)
        if (reached[part] != 0 && (program.nodes[part].uses & uses_feature) != 0)
          program.bodies.push_back(static_cast<std::int32_t>(part));
    }
    program.body_ends.push_back(static_cast<std::int32_t>(program.bodies.size()));
  }
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
  for (std::size_t i = 0; i < program.nodes.size(); ++i) {
    if (program.nodes[i].op != Op::searchsorted) continue;
    const TileProgram::Slot& slot = program.slots[static_cast<std::size_t>(program.tables[i])];
    if (!slot.table.ascending())
      throw std::invalid_argument("table '" + std::string(slot.name(program.names)) +
                                  "' does not ascend; searchsorted needs entries in ascending order");
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

TileProgram compile(View view, int root, const Extents& extents, std::span<const Table> tables) {
  Pool pool;
  const int last = import(pool, view, root);
  TileProgram program;
  program.nodes.assign(pool.nodes.begin(), pool.nodes.begin() + last + 1);
  program.names = pool.names;
  for (const Node& n : program.nodes) {
    program.classes.push_back(class_of(n));
    program.tables.push_back(-1);
    if (!reads_table(n.op)) continue;
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
  const std::vector<bool> absorbed = find_distances(program);
  for (const Class c : {Class::constant, Class::q_only, Class::k_only, Class::both}) {
    for (std::size_t i = 0; i < program.nodes.size(); ++i)
      if (program.classes[i] == c && (program.nodes[i].uses & uses_feature) == 0 && !absorbed[i])
        program.steps.push_back(static_cast<std::int32_t>(i));
    program.step_ends[static_cast<std::size_t>(c) + 1] = static_cast<std::int32_t>(program.steps.size());
  }
  find_bodies(program);
  if (program.type() == Type::boolean)
    for (const Node& n : program.nodes)
      if (n.op == Op::sum) throw std::invalid_argument("a mask has a sum over features; write it in a score function");
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
