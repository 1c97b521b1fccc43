#include <treadle/backends/reference/functions.hpp>

#include <treadle/graph/scalar/check.hpp>

#include <limits>
#include <stdexcept>

namespace treadle::reference {
namespace {

void collect_tables(scalar::View view, int i, std::vector<std::string>& names) {
  if (i < 0) return;
  const scalar::Node& n = view[i];
  if (scalar::reads_table(n.op)) {
    const std::string name(view.name(n));
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  for (int c = 0; c < 3; ++c) collect_tables(view, n.child(c), names);
}

bool ascends(const TensorView& t) {
  const std::int64_t rows = t.rank == 2 ? t.shape[0] : 1, columns = t.shape[t.rank == 2 ? 1 : 0];
  const auto entry = [&](std::int64_t r, std::int64_t c) {
    return t.rank == 2 ? scalar::read_integer(t, r, c) : scalar::read_integer(t, c, 0);
  };
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 1; c < columns; ++c)
      if (entry(r, c) < entry(r, c - 1)) return false;
  return true;
}

}  // namespace

ScalarFunction::ScalarFunction(scalar::View view, int root, std::int64_t q_len, std::int64_t k_len,
                               std::int64_t iteration)
    : view_(view), root_(root), evaluator_(view, root) {
  at_.q_len = q_len;
  at_.k_len = k_len;
  at_.iteration = iteration;
}

std::vector<std::string> ScalarFunction::table_names() const {
  std::vector<std::string> names;
  collect_tables(view_, root_, names);
  return names;
}

template <class T>
void ScalarFunction::bind(const std::string& name, const Array<T>& values, DType dtype) {
  if (values.rank() < 1 || values.rank() > 2)
    throw std::invalid_argument("table '" + name + "' has rank " + std::to_string(values.rank()) +
                                "; a lookup has 1 or 2 indices");
  auto storage = std::make_shared<Storage>();
  storage->name = name;
  scalar::Table table;
  if (dtype == DType::f32 || dtype == DType::f64) {
    storage->numbers.assign(values.data.begin(), values.data.end());
    table.view = dense_view(storage->numbers.data(), DType::f64, values.shape);
  } else {
    constexpr double least = std::numeric_limits<std::int32_t>::min(), most = std::numeric_limits<std::int32_t>::max();
    for (const T v : values.data)  // i64 tables are read as i32
      storage->integers.push_back(static_cast<std::int32_t>(std::clamp(static_cast<double>(v), least, most)));
    table.view = dense_view(storage->integers.data(), DType::i32, values.shape);
  }
  table.name = storage->name;
  for (int i = 0; i <= root_; ++i)
    if (view_[i].op == scalar::Op::searchsorted && view_.name(view_[i]) == name && !ascends(table.view))
      throw std::invalid_argument("table '" + name +
                                  "' does not ascend; searchsorted needs entries in ascending order");
  tables_.push_back(table);
  storage_.push_back(std::move(storage));
}

template <class T>
void ScalarFunction::bind_rows(const Array<T>& q, const Array<T>& k) {
  queries_ = std::make_shared<Rows>(Rows{q.shape, {q.data.begin(), q.data.end()}});
  keys_ = std::make_shared<Rows>(Rows{k.shape, {k.data.begin(), k.data.end()}});
  group_ = q.shape[1] / std::max<std::int64_t>(k.shape[1], 1);
}

void ScalarFunction::check(std::int64_t batch, std::int64_t heads, std::int64_t features) const {
  scalar::check_lookups(view_, root_, {batch, heads, at_.q_len, at_.k_len, at_.iteration, features}, tables_);
}

TensorView ScalarFunction::Rows::row(std::int64_t b, std::int64_t h, std::int64_t at) {
  return dense_view(data.data() + ((b * shape[1] + h) * shape[2] + at) * shape[3], DType::f64,
                    std::span(shape).last(1));
}

double ScalarFunction::feature(double x) const {
  scalar::Bindings at = at_;
  at.x = x;
  return evaluator_(at);
}

double ScalarFunction::value(double score, std::int64_t b, std::int64_t h, std::int64_t q, std::int64_t k) const {
  scalar::Bindings at = at_;
  at.score = score;
  at.b = b;
  at.h = h;
  at.q = q;
  at.k = k;
  at.tables = tables_;
  if (queries_ != nullptr) {
    at.q_row = queries_->row(b, h, q);
    at.k_row = keys_->row(b, h / group_, k);
  }
  return evaluator_(at);
}

template void ScalarFunction::bind(const std::string&, const Array<float>&, DType);
template void ScalarFunction::bind(const std::string&, const Array<double>&, DType);
template void ScalarFunction::bind_rows(const Array<float>&, const Array<float>&);
template void ScalarFunction::bind_rows(const Array<double>&, const Array<double>&);

}  // namespace treadle::reference
