#include <treadle/models/encoder_pass.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>

namespace treadle::models {

EncoderPass::EncoderPass(const LoadedModel& loaded, const BindOptions& options)
    : model_(loaded.encoder.view(), loaded.parameters, options), outputs_{{"cross_k", {}, {}}, {"cross_v", {}, {}}} {
  vocabulary_ = rows_by_ids(loaded.encoder.view(), "input_ids");
}

void EncoderPass::read(const std::vector<std::vector<std::int32_t>>& texts) {
  source_ = 0;
  for (const auto& t : texts) source_ = std::max(source_, static_cast<std::int64_t>(t.size()));
  const auto batch = static_cast<std::int64_t>(texts.size());
  const auto start = std::chrono::steady_clock::now();
  model_.bind_dims({{"batch", batch}, {"seq", source_}});
  const auto planned = std::chrono::steady_clock::now();
  plan_seconds_ = std::chrono::duration<double>(planned - start).count();
  ids_.assign(static_cast<std::size_t>(batch * source_), 0);
  mask_.assign(ids_.size(), 0);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto at = static_cast<std::ptrdiff_t>(i) * source_;
    std::copy(texts[i].begin(), texts[i].end(), ids_.begin() + at);
    std::fill_n(mask_.begin() + at, texts[i].size(), 1);
  }
  std::vector<NamedTensor> out;
  for (Output& o : outputs_) {
    o.view = model_.output_spec(o.name);
    o.values.resize(static_cast<std::size_t>(o.view.size()));
    o.view.data = o.values.data();
    out.push_back({o.name, o.view});
  }
  const std::int64_t shape[] = {batch, source_};
  const NamedTensor in[] = {{"input_ids", dense_view(ids_.data(), i32, shape)},
                            {"attention_mask", dense_view(mask_.data(), i32, shape)}};
  const auto ready = std::chrono::steady_clock::now();
  model_.run(in, out);
  run_seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - ready).count();
}

bool EncoderPass::fills(const Port& state) const {
  return std::any_of(outputs_.begin(), outputs_.end(),
                     [&](const Output& o) { return state.name.ends_with("." + o.name); });
}

void EncoderPass::fill(BoundModel& decoder, std::span<const Port> states, std::int64_t copies) const {
  for (const Port& state : states) {
    for (const Output& o : outputs_) {
      if (!state.name.ends_with("." + o.name)) continue;
      const TensorView to = decoder.state(state.name);  // [layers, texts · copies, heads, source, head_dim]
      const std::int64_t layers = o.view.shape[0], texts = o.view.shape[1],
                         block = o.view.size() / std::max<std::int64_t>(layers * texts, 1);
      for (std::int64_t l = 0; l < layers; ++l)
        for (std::int64_t r = 0; r < texts * copies; ++r)
          std::memcpy(to.as<float>() + (l * texts * copies + r) * block,
                      o.values.data() + (l * texts + r / copies) * block,
                      static_cast<std::size_t>(block) * sizeof(float));
    }
  }
}

}  // namespace treadle::models
