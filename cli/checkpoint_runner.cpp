#include "checkpoint_runner.hpp"

#include <treadle/backends/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

namespace treadle::cli {

namespace {

bool has_input(GraphView g, std::string_view name) {
  for (std::int32_t n = 0; n < g.size(); ++n)
    if (g.nodes[static_cast<std::size_t>(n)].op == op::input && g.leaf(n) == name) return true;
  return false;
}

}  // namespace

models::LoadedModel SharedCheckpoint::load(models::LoadOptions options) {
  options.shared = first_ ? &*first_ : nullptr;
  models::LoadedModel loaded = models::load_checkpoint(folder_, options);
  if (!first_) first_ = loaded;
  return loaded;
}

Runner::Runner(SharedCheckpoint& checkpoint, const Variant& variant, const Options& options)
    : checkpoint_(checkpoint),
      loaded_(load(checkpoint, variant, options)),
      model_(loaded_.bind(options.bind)),
      segments_wanted_(has_input(loaded_.graph.view(), "token_type_ids")),
      blocks_(variant.table) {}

models::LoadedModel Runner::load(SharedCheckpoint& checkpoint, const Variant& variant, const Options& options) {
  models::LoadOptions o;
  o.attention = variant.at_shape
                    ? variant.at_shape({.heads = options.heads, .kv_heads = options.heads, .length = options.longest})
                    : variant.attention;
  o.every_layer = options.every_layer;
  if (variant.table) {
    o.block_table = variant.table->name;
    o.block = variant.table->block;
  }
  try {
    return checkpoint.load(o);
  } catch (const Error& e) {
    throw Error(fmt::format("variant '{}': {}", variant.name, e.what()));
  }
}

void Runner::bind(std::int64_t batch, std::int64_t tokens, std::span<const std::string_view> outputs,
                  Results& results) {
  const PackedStore::Scope scope(checkpoint_.store());
  model_.bind_dims({{"batch", batch}, {"seq", tokens}});
  ids_ = io::Tensor(i32, {batch, tokens});
  segments_ = io::Tensor(i32, {batch, tokens});
  if (blocks_) {
    const std::int64_t blocks = blocks_->blocks(tokens);
    table_ = io::Tensor(boolean, {blocks, blocks});
    const auto made = blocks_->make(blocks);
    std::copy(made.begin(), made.end(), table_.as<std::uint8_t>().begin());
  }
  outputs_.assign(outputs.begin(), outputs.end());
  for (const std::string& name : outputs_) {
    const TensorView v = model_.output_spec(name);
    std::vector<std::int64_t> shape(v.shape.begin(), v.shape.begin() + v.rank);
    const auto old = results.find(name);
    if (old == results.end() || old->second.shape != shape)
      results.insert_or_assign(name, io::Tensor(f32, std::move(shape)));
  }
}

double Runner::run(std::span<const std::int32_t> ids, Results& results) {
  std::copy(ids.begin(), ids.end(), ids_.as<std::int32_t>().begin());
  std::vector<NamedTensor> in = {{"input_ids", ids_.view()}}, out;
  if (segments_wanted_) in.push_back({"token_type_ids", segments_.view()});
  if (blocks_) in.push_back({blocks_->name, table_.view()});
  for (const std::string& name : outputs_) out.push_back({name, results.at(name).view()});
  const auto start = std::chrono::steady_clock::now();
  model_.run(in, out);
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

std::vector<double> layer_errors(const io::Tensor& layers, const io::Tensor& dense) {
  const std::span<const float> got = layers.as<float>(), want = dense.as<float>();
  const auto count = static_cast<std::size_t>(dense.shape[0]);
  const std::size_t size = want.size() / count;
  std::vector<double> errors;
  for (std::size_t l = 0; l < count; ++l) {
    double difference = 0, norm = 0;
    for (std::size_t j = l * size; j < (l + 1) * size; ++j) {
      const double x = static_cast<double>(got[j]), y = static_cast<double>(want[j]);
      difference += (x - y) * (x - y);
      norm += y * y;
    }
    errors.push_back(norm > 0 ? std::sqrt(difference / norm) : 0);
  }
  return errors;
}

double quantile(std::vector<double> x, double p) {
  std::sort(x.begin(), x.end());
  const double at = p * static_cast<double>(x.size() - 1);
  const auto low = static_cast<std::size_t>(at);
  const std::size_t high = std::min(low + 1, x.size() - 1);
  return x[low] + (at - static_cast<double>(low)) * (x[high] - x[low]);
}

double median_ratio(std::span<const double> times, std::span<const double> dense) {
  std::vector<double> ratios;
  for (std::size_t j = 0; j < times.size(); ++j) ratios.push_back(times[j] / dense[j]);
  return quantile(ratios, 0.5);
}

std::vector<Variant> dense_first(std::span<const Variant> variants) {
  std::vector<Variant> all = {Variant{}};
  for (const Variant& v : variants)
    if (v.name != "dense") all.push_back(v);
  return all;
}

}  // namespace treadle::cli
