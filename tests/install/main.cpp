// A static model and a file, with nothing but installed headers.
#include <treadle/io/npy.hpp>
#include <treadle/treadle.hpp>

#include <cstdio>

using namespace treadle;

inline constexpr auto tiny = [] {
  Builder g;
  const Node x = g.input("x", f32, {batch, seq, 64});
  g.output("y", linear("out", layer_norm("ln", x), {.width = 32}));
  return g.finish();
};
struct Tiny : Model<tiny> {};

int main() {
  BoundModel model = Tiny::bind(Parameters::random(Tiny::source.view(), 1));
  model.bind_dims({{"batch", 1}, {"seq", 5}});
  io::Tensor x(f32, {1, 5, 64}), y(f32, {1, 5, 32});
  model.run({{"x", x.view()}}, {{"y", y.view()}});
  io::save_npy("y.npy", y.view());
  std::printf("%s\n", model.describe().c_str());
  return io::load_npy("y.npy").data == y.data ? 0 : 1;
}
