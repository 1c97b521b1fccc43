// A static model and a file, with nothing but installed headers; and a model whose score function treadle_add_model
// compiled into the kernel.
#include "models.hpp"

#include <treadle/io/npy.hpp>
#include <treadle/treadle.hpp>

#include <cstdio>
#include <string>
#include <vector>

using namespace treadle;

inline constexpr auto tiny = [] {
  Builder g;
  const Node x = g.input("x", f32, {batch, seq, 64});
  g.output("y", linear("out", layer_norm("ln", x), {.width = 32}));
  return g.finish();
};
struct Tiny : Model<tiny> {};

/// The same bits from the inlined function and from tiles, and the plan says which one runs.
bool decaying() {
  constexpr std::int64_t length = 37;
  std::vector<float> x(length * 64), y(length * 64), z(length * 64);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 37 % 101) / 50.0f - 1.0f;
  const std::int64_t shape[] = {1, length, 64};
  const auto run = [&](std::vector<float>& out, bool inlined) {
    BoundModel model = my::Decaying::bind({}, {.inlined = inlined});
    model.bind_dims({{"batch", 1}, {"seq", length}});
    model.run({{"x", dense_view(x.data(), f32, shape)}}, {{"y", dense_view(out.data(), f32, shape)}});
    std::string forms;
    for (const StepInfo& s : model.steps()) forms += s.form;
    return forms.find(inlined ? "score inlined" : "score in tiles") != std::string::npos;
  };
  return run(y, true) && run(z, false) && y == z;
}

int main() {
  if (!decaying()) return 2;
  BoundModel model = Tiny::bind(Parameters::random(Tiny::source.view(), 1));
  model.bind_dims({{"batch", 1}, {"seq", 5}});
  io::Tensor x(f32, {1, 5, 64}), y(f32, {1, 5, 32});
  model.run({{"x", x.view()}}, {{"y", y.view()}});
  io::save_npy("y.npy", y.view());
  std::printf("%s\n", model.describe().c_str());
  return io::load_npy("y.npy").data == y.data ? 0 : 1;
}
