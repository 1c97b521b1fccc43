#include "accuracy.hpp"

#include <treadle/graph/mask/tiles.hpp>
#include <treadle/ops/reference.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <thread>

namespace treadle::cli {

namespace {
constexpr std::int64_t all_rows_up_to = 2048, sampled_per_head = 64;

/// Splits [0, n) among threads; `work(first, last)`.
template <class Work>
void in_parallel(std::size_t n, int threads, Work work) {
  const auto count = std::min<std::size_t>(std::max(threads, 1), std::max<std::size_t>(n, 1));
  std::vector<std::thread> others;
  for (std::size_t t = 1; t < count; ++t) others.emplace_back([=] { work(n * t / count, n * (t + 1) / count); });
  work(0, n / count);
  for (std::thread& t : others) t.join();
}

/// The feature map of a variant of linear attention, over rows of head_dim numbers.
class FeatureMap {
 public:
  FeatureMap(const Variant& v, std::int64_t head_dim) : dim_(static_cast<std::size_t>(head_dim)) {
    if (v.features == 0) return;
    projection_ = reference::random_projection<double>(v.features, head_dim, v.seed);
    size_ = static_cast<std::size_t>(v.features);
  }
  std::size_t size() const { return size_ == 0 ? dim_ : size_; }
  /// Rows of x one behind the other; random features are relative to their largest exponent, which cancels.
  std::vector<double> operator()(const float* x, std::size_t rows) const {
    const reference::Array<double> in{{static_cast<std::int64_t>(rows), static_cast<std::int64_t>(dim_)},
                                      {x, x + rows * dim_}};
    if (size_ == 0) return reference::activate(in, activation::elu_plus_one).data;
    std::vector<double> e =
        reference::random_features(in, projection_, std::pow(static_cast<double>(dim_), -0.25)).data;
    const double largest = *std::max_element(e.begin(), e.end());
    for (double& f : e) f = std::exp(f - largest);
    return e;
  }

 private:
  std::size_t dim_, size_ = 0;
  reference::Array<double> projection_;
};
/// Whether a mask keeps a pair, row by row: the keys of a row are found when its first pair is asked for.
class MaskRows {
 public:
  MaskRows(const Mask& mask, const scalar::Extents& extents, std::span<const scalar::Table> tables)
      : tiles_(std::make_shared<mask::Tiles>(mask.view(), mask.root(), extents, tables)),
        workspace_(tiles_->workspace_bytes() + 64),
        kept_(static_cast<std::size_t>(extents.k_len)) {}

  bool operator()(std::int64_t b, std::int64_t h, std::int64_t q, std::int64_t k) {
    if (b != b_ || h != h_ || q != q_) fill(b, h, q);
    return kept_[static_cast<std::size_t>(k)] != 0;
  }

 private:
  std::shared_ptr<const mask::Tiles> tiles_;
  std::vector<std::byte> workspace_;
  std::vector<std::uint8_t> kept_;
  std::int64_t b_ = -1, h_ = -1, q_ = -1;

  void fill(std::int64_t b, std::int64_t h, std::int64_t q) {
    b_ = b, h_ = h, q_ = q;
    std::fill(kept_.begin(), kept_.end(), std::uint8_t{0});
    void* memory = workspace_.data();
    std::size_t room = workspace_.size();
    auto stream =
        tiles_->stream(b, h, q, q + 1, mask::Tiles::max_block, std::align(64, tiles_->workspace_bytes(), memory, room));
    mask::Tile t;
    while (stream.next(t))
      for (std::int64_t k = t.k0; k < t.k1; ++k)
        kept_[static_cast<std::size_t>(k)] = t.full || (t.bits[k - t.k0] & 1) != 0 ? 1 : 0;
  }
};
}  // namespace

AccuracyMeter::AccuracyMeter(const AttentionShape& shape, const float* q, const float* k, const float* v,
                             std::uint64_t seed, int threads)
    : shape_(shape), scale_(1.0 / std::sqrt(static_cast<double>(shape.head_dim))), threads_(threads) {
  const std::int64_t of_q[] = {shape.batch, shape.heads, shape.length, shape.head_dim};
  const std::int64_t of_k[] = {shape.batch, shape.kv_heads, shape.length, shape.head_dim};
  q_ = dense_view(const_cast<float*>(q), f32, of_q);  // only read
  k_ = dense_view(const_cast<float*>(k), f32, of_k);
  v_ = dense_view(const_cast<float*>(v), f32, of_k);
  rows_ = reference::sample_rows(q_, shape.length <= all_rows_up_to ? shape.length : sampled_per_head, seed);
}

reference::RowResults AccuracyMeter::softmax_rows(const std::function<reference::Keep()>& make_keep) const {
  reference::RowResults all;
  all.value_dim = shape_.head_dim;
  all.out.resize(rows_.size() * static_cast<std::size_t>(shape_.head_dim));
  all.lse.resize(rows_.size());
  all.entropy.resize(rows_.size());
  in_parallel(rows_.size(), threads_, [&](std::size_t first, std::size_t last) {
    const auto part =
        reference::attention_rows(q_, k_, v_, make_keep(), scale_, std::span(rows_).subspan(first, last - first));
    const auto width = static_cast<std::size_t>(shape_.head_dim);
    std::copy(part.out.begin(), part.out.end(), all.out.begin() + static_cast<std::ptrdiff_t>(first * width));
    std::copy(part.lse.begin(), part.lse.end(), all.lse.begin() + static_cast<std::ptrdiff_t>(first));
    std::copy(part.entropy.begin(), part.entropy.end(), all.entropy.begin() + static_cast<std::ptrdiff_t>(first));
  });
  return all;
}

std::vector<double> AccuracyMeter::linear_entropy(const Variant& variant) const {
  // Linear attention's weights are φ(q)·φ(k) / Σ φ(q)·φ(k): never negative for elu + 1 and for positive random
  // features, so a distribution over the keys.
  std::vector<double> entropy(rows_.size());
  const FeatureMap map(variant, shape_.head_dim);
  const std::size_t dim = map.size();
  in_parallel(rows_.size(), threads_, [&](std::size_t first, std::size_t last) {
    std::vector<double> query, keys;
    std::int64_t batch = -1, head = -1;
    for (std::size_t r = first; r < last; ++r) {
      const reference::Row row = rows_[r];
      const std::int64_t kv = row.head / (shape_.heads / shape_.kv_heads);
      if (row.batch != batch || kv != head) {
        batch = row.batch;
        head = kv;
        const float* k = k_.as<float>() + row.batch * k_.strides[0] + kv * k_.strides[1];
        keys = map(k, static_cast<std::size_t>(shape_.length));
      }
      const float* q =
          q_.as<float>() + row.batch * q_.strides[0] + row.head * q_.strides[1] + row.query * q_.strides[2];
      query = map(q, 1);
      const auto count = static_cast<std::size_t>(variant.causal ? row.query + 1 : shape_.length);
      double sum = 0, sum_log = 0;
      for (std::size_t j = 0; j < count; ++j) {
        double w = 0;
        for (std::size_t d = 0; d < dim; ++d) w += query[d] * keys[j * dim + d];
        if (w <= 0) continue;
        sum += w;
        sum_log += w * std::log(w);
      }
      entropy[r] = sum > 0 ? std::log(sum) - sum_log / sum : 0;
    }
  });
  return entropy;
}

void AccuracyMeter::add_entropies(Accuracy& a, const std::vector<double>& entropy) const {
  double mean = 0;
  a.head_entropies.assign(static_cast<std::size_t>(shape_.heads), 0.0);
  const double per_head = static_cast<double>(entropy.size()) / static_cast<double>(shape_.heads);
  for (std::size_t r = 0; r < entropy.size(); ++r) {
    mean += entropy[r] / static_cast<double>(entropy.size());
    a.head_entropies[static_cast<std::size_t>(rows_[r].head)] += entropy[r] / per_head;
  }
  a.mean_entropy = mean;
}

Accuracy AccuracyMeter::operator()(const Variant& variant, const std::vector<float>& out) {
  reference::RowResults& truth = variant.causal ? causal_ : dense_;
  if (truth.out.empty()) {
    truth = softmax_rows([&]() -> reference::Keep {
      if (!variant.causal) return {};
      return [](std::int64_t, std::int64_t, std::int64_t q, std::int64_t k) { return k <= q; };
    });
  }
  Accuracy a;
  double difference = 0, size = 0;
  const auto heads = static_cast<std::size_t>(shape_.heads);
  std::vector<double> head_difference(heads), head_size(heads);
  const auto dim = static_cast<std::size_t>(shape_.head_dim);
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    const reference::Row row = rows_[r];
    const float* got =
        out.data() + ((row.batch * shape_.heads + row.head) * shape_.length + row.query) * shape_.head_dim;
    for (std::size_t d = 0; d < dim; ++d) {
      const double want = truth.out[r * dim + d], e = static_cast<double>(got[d]) - want;
      difference += e * e;
      size += want * want;
      head_difference[static_cast<std::size_t>(row.head)] += e * e;
      head_size[static_cast<std::size_t>(row.head)] += want * want;
    }
  }
  a.relative_error = size > 0 ? std::sqrt(difference / size) : std::sqrt(difference);
  for (std::size_t h = 0; h < heads; ++h)
    a.head_errors.push_back(head_size[h] > 0 ? std::sqrt(head_difference[h] / head_size[h])
                                             : std::sqrt(head_difference[h]));
  if (variant.weights == Variant::Weights::none) return a;
  if (variant.weights == Variant::Weights::linear) {
    add_entropies(a, linear_entropy(variant));
    return a;
  }
  const std::optional<Mask>& mask = variant.attention.mask;
  const bool is_truth = !mask || *mask == mask::causal();
  add_entropies(a, is_truth ? truth.entropy : mask_entropy(variant));
  return a;
}

std::vector<double> AccuracyMeter::mask_entropy(const Variant& variant) const {
  std::vector<std::uint8_t> data;
  std::vector<scalar::Table> tables;
  if (variant.table) {
    const std::int64_t n = variant.table->blocks(shape_.length), of_table[] = {n, n};
    data = variant.table->make(n);
    tables.push_back({variant.table->name, dense_view(data.data(), boolean, of_table)});
  }
  const scalar::Extents extents{
      .batch = shape_.batch, .heads = shape_.heads, .q_len = shape_.length, .k_len = shape_.length};
  return softmax_rows([&]() -> reference::Keep { return MaskRows(*variant.attention.mask, extents, tables); }).entropy;
}

}  // namespace treadle::cli
