// Parameters as buffers, what is made of them once, and packed weights.

#include <treadle/backends/dim_values.hpp>
#include <treadle/backends/error.hpp>
#include <treadle/backends/packed_store.hpp>
#include <treadle/backends/planner.hpp>

#include <cstdio>
#include <cstring>

namespace treadle::plan {
namespace {

/// Copies f32 elements of equal shapes, any strides.
void copy_f32(const TensorView& from, const TensorView& to, int axis = 0, std::int64_t at_from = 0,
              std::int64_t at_to = 0) {
  if (axis == from.rank) {
    to.as<float>()[at_to] = from.as<const float>()[at_from];
    return;
  }
  const auto a = static_cast<std::size_t>(axis);
  if (axis + 1 == from.rank && from.strides[a] == 1 && to.strides[a] == 1) {
    if (from.shape[a] > 0)
      std::memcpy(to.as<float>() + at_to, from.as<const float>() + at_from,
                  static_cast<std::size_t>(from.shape[a]) * sizeof(float));
    return;
  }
  for (std::int64_t i = 0; i < from.shape[a]; ++i)
    copy_f32(from, to, axis + 1, at_from + i * from.strides[a], at_to + i * to.strides[a]);
}

void multiply(float* x, std::size_t count, float factor) {
  if (factor == 1) return;
  for (std::size_t i = 0; i < count; ++i) x[i] *= factor;
}

std::string scaled_key(std::string key, float factor) {
  if (factor == 1) return key;
  char text[32];
  std::snprintf(text, sizeof(text), " * %a", static_cast<double>(factor));
  return key + text;
}

}  // namespace

/// Names a constant view: its buffer's key and what is seen of it.
std::string Planner::signature(const View& v) {
  std::string s = buffer(v).key + "{";
  for (const ViewDim& d : v.dims) s += std::to_string(d.size) + ":" + std::to_string(stride(buffer(v), d)) + ",";
  for (const std::int64_t o : v.origin) s += std::to_string(o) + ";";
  return s + "}";
}

View Planner::constant_buffer(const std::string& key, const Constants::Memory& memory) {
  Buffer b;
  b.place = Place::constant;
  b.view = memory.view;
  b.bytes = memory.bytes;
  b.key = key;
  plan_.buffers.push_back(std::move(b));
  const int i = static_cast<int>(plan_.buffers.size()) - 1;
  return whole(plan_.buffers[static_cast<std::size_t>(i)], i);
}

View Planner::parameter(std::int32_t n) {
  const std::string name = full_name(g_, n, iterations_);
  const TensorView found = constants_.parameters.find(name);
  const std::vector<std::int64_t> shape = sizes_(g_.shape({n, 0}));
  if (!found && dense_view(nullptr, f32, shape).size() != 0)
    throw Error("parameter '" + name + "' is missing; the model wants f32 " + shape_text(shape));
  const std::vector<std::int64_t> got(found.shape.begin(), found.shape.begin() + found.rank);
  if (got != shape || found.dtype != f32)
    throw Error("parameter '" + name + "' is " + std::string(treadle::name(found.dtype)) + " " + shape_text(got) +
                "; the model wants f32 " + shape_text(shape));
  View v = constant_buffer(name, {nullptr, found, static_cast<std::size_t>(found.size()) * sizeof(float)});
  // Kernels want rows without gaps; tables and vectors are used as they are.
  View trial = v;
  return require_unit(buffer(trial), trial) ? v : folded_concatenation(n, {v}, 0);
}

Constants::Memory Planner::constant_memory(const std::string& key, DType dtype, const std::vector<std::int64_t>& shape,
                                           const std::function<double(std::int64_t)>& element) {
  if (const auto old = constants_.made.find(key); old != constants_.made.end()) return old->second;
  Constants::Memory memory;
  memory.view = dense_view(nullptr, dtype, shape);
  const std::int64_t count = memory.view.size();
  memory.bytes = static_cast<std::size_t>(count) * size_of(dtype);
  memory.data = plan::allocate(memory.bytes);
  memory.view.data = memory.data.get();
  for (std::int64_t i = 0; i < count; ++i) {
    const double x = element(i);
    switch (dtype) {
      case DType::f32: memory.view.as<float>()[i] = static_cast<float>(x); break;
      case DType::f64: memory.view.as<double>()[i] = x; break;
      case DType::i32: memory.view.as<std::int32_t>()[i] = static_cast<std::int32_t>(x); break;
      case DType::i64: memory.view.as<std::int64_t>()[i] = static_cast<std::int64_t>(x); break;
      case DType::boolean: memory.view.as<std::uint8_t>()[i] = x != 0 ? 1 : 0; break;
    }
  }
  return constants_.made.emplace(key, std::move(memory)).first->second;
}

/// Parts joined; one part alone becomes a dense copy. They have memory only if a step reads them (make_joins); what is
/// packed is read part by part. Later bindings find what the first one made.
View Planner::folded_concatenation(std::int32_t, const std::vector<View>& parts, std::size_t axis) {
  std::string key = "join" + std::to_string(axis) + "(";
  for (const View& p : parts) key += signature(p) + " ";
  key += ")";
  if (const auto old = constants_.made.find(key); old != constants_.made.end())
    return constant_buffer(key, old->second);
  std::vector<std::int64_t> shape = parts[0].shape();
  for (std::size_t i = 1; i < parts.size(); ++i) shape[axis] += parts[i].dims[axis].size;
  Constants::Memory memory;
  memory.view = dense_view(nullptr, f32, shape);
  memory.bytes = static_cast<std::size_t>(memory.view.size()) * sizeof(float);
  const View all = constant_buffer(key, memory);
  joins_[all.buffer] = {parts, axis};
  return all;
}

/// The parts as one tensor, where they lie in memory like that: Q, K and V of a matrix that a checkpoint holds whole.
std::optional<TensorView> Planner::side_by_side(const Join& join) {
  TensorView all;
  for (const View& p : join.parts) {
    const Buffer& b = buffer(p);
    const auto inner = joins_.find(p.buffer);
    TensorView part;
    if (b.view.data != nullptr) {
      part = resolve(b, p);
    } else if (inner != joins_.end() && p == whole(b, p.buffer)) {
      const auto found = side_by_side(inner->second);
      if (!found) return std::nullopt;
      part = *found;
    } else {
      return std::nullopt;
    }
    if (all.data == nullptr) {
      all = part;
      continue;
    }
    const std::int64_t step = all.strides[join.axis] * all.shape[join.axis];
    if (part.rank != all.rank || part.strides != all.strides || part.as<const float>() != all.as<const float>() + step)
      return std::nullopt;
    all.shape[join.axis] += part.shape[join.axis];
  }
  return all.data == nullptr ? std::nullopt : std::optional(all);
}

/// A constant's values, to be read at once: those of a join without memory lie in `scratch_` until the next one's do.
TensorView Planner::values_of(const View& v) {
  const Buffer& b = buffer(v);
  const auto found = joins_.find(v.buffer);
  if (found == joins_.end() || b.view.data != nullptr) return resolve(b, v);
  if (v == whole(b, v.buffer))
    if (const auto all = side_by_side(found->second)) return *all;
  if (scratch_of_ != v.buffer) {
    const std::shared_ptr<void> memory = plan::allocate(b.bytes);
    TensorView to = b.view;
    to.data = memory.get();
    write_join(found->second, to);
    scratch_ = memory;
    scratch_of_ = v.buffer;
  }
  Buffer filled = b;
  filled.view.data = scratch_.get();
  return resolve(filled, v);
}

void Planner::write_join(const Join& join, const TensorView& to) {
  std::int64_t at = 0;
  for (const View& p : join.parts) {
    TensorView part = to;
    if (to.rank > 0) {
      part.shape[join.axis] = p.dims[join.axis].size;
      part.data = part.as<float>() + at * part.strides[join.axis];
      at += part.shape[join.axis];
    }
    copy_f32(values_of(p), part);
  }
}

/// Memory for the joins that steps read.
void Planner::make_joins() {
  for (const auto& [i, join] : joins_) {
    Buffer& b = plan_.buffers[static_cast<std::size_t>(i)];
    if (b.first < 0) continue;
    if (const auto same = constants_.made.find(b.key); same != constants_.made.end()) {  // two nodes ask for one join
      b.view.data = same->second.view.data;
      continue;
    }
    Constants::Memory memory;
    memory.view = b.view;
    memory.bytes = b.bytes;
    memory.data = plan::allocate(memory.bytes);
    memory.view.data = memory.data.get();
    write_join(join, memory.view);
    b.view.data = memory.view.data;
    constants_.made.emplace(b.key, std::move(memory));
  }
  scratch_.reset();
  scratch_of_ = -1;
}

/// A dense copy times `factor`.
View Planner::folded_scale(const View& v, float factor) {
  const std::string key = scaled_key(signature(v), factor);
  if (const auto old = constants_.made.find(key); old != constants_.made.end())
    return constant_buffer(key, old->second);
  Constants::Memory memory;
  memory.view = dense_view(nullptr, f32, v.shape());
  memory.bytes = static_cast<std::size_t>(memory.view.size()) * sizeof(float);
  memory.data = plan::allocate(memory.bytes);
  memory.view.data = memory.data.get();
  const View all = constant_buffer(key, memory);
  copy_f32(values_of(v), memory.view);
  multiply(memory.view.as<float>(), static_cast<std::size_t>(memory.view.size()), factor);
  constants_.made.emplace(key, std::move(memory));
  return all;
}

/// The slot's view; a factor that is still open is multiplied in first.
const View& Planner::settled(Slot& s) {
  if (s.factor != 1) s.view = folded_scale(s.view, s.factor);
  s.factor = 1;
  return s.view;
}

/// What tells one weight's memory from another's; empty where it is no parameter's.
std::string Planner::memory_signature(const View& v) {
  const Buffer& b = buffer(v);
  std::string s;
  if (const auto join = joins_.find(v.buffer); join != joins_.end()) {
    s = "join" + std::to_string(join->second.axis) + "(";
    for (const View& p : join->second.parts) {
      const std::string part = memory_signature(p);
      if (part.empty()) return {};
      s += part + " ";
    }
    s += ")";
  } else if (constants_.parameters.find(b.key).data == b.view.data && b.view.data != nullptr) {
    s = std::to_string(reinterpret_cast<std::uintptr_t>(b.view.data));
  } else {
    return {};
  }
  s += "{";
  for (const ViewDim& d : v.dims)
    s.append(std::to_string(d.size)).append(":").append(std::to_string(stride(b, d))) += ",";
  for (const std::int64_t o : v.origin) s.append(std::to_string(o)) += ";";
  return s + "}";
}

/// [out, in] times `factor` in the kernel's order; equal weights of several nodes are packed once, and those of several
/// models where they share a PackedStore.
kernel::PackedWeights Planner::packed(const View& weight, float factor) {
  const std::int64_t k = weight.dims[1].size, n = weight.dims[0].size;
  const std::string key = scaled_key(signature(weight), factor);
  auto old = constants_.packed.find(key);
  if (old == constants_.packed.end()) {
    PackedStore* const store = PackedStore::current();
    std::string shared = store != nullptr ? memory_signature(weight) : std::string();
    if (!shared.empty()) shared = scaled_key(std::string(kernels_.isa) + " " + shared, factor);
    Constants::Memory memory;
    memory.bytes = kernels_.packed_bytes(k, n);
    const PackedStore::Weights* found = store == nullptr || shared.empty() ? nullptr : store->find(shared);
    if (found != nullptr) {
      memory.data = found->data;
    } else {
      memory.data = plan::allocate(memory.bytes);
      TensorView w = values_of(weight);
      std::swap(w.shape[0], w.shape[1]);
      std::swap(w.strides[0], w.strides[1]);
      kernels_.pack(w, static_cast<float*>(memory.data.get()));
      multiply(static_cast<float*>(memory.data.get()), memory.bytes / sizeof(float), factor);
      if (store != nullptr && !shared.empty()) store->keep(std::move(shared), {memory.data, memory.bytes});
    }
    old = constants_.packed.emplace(key, std::move(memory)).first;
  }
  return {static_cast<const float*>(old->second.data.get()), k, n};
}

}  // namespace treadle::plan
