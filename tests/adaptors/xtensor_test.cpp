// xtensor at the border: containers, strided views, wrong ranks.

#include <treadle/treadle.hpp>
#include <treadle/xtensor.hpp>

#include <boost/test/unit_test.hpp>
#include <xtensor/xarray.hpp>
#include <xtensor/xstrided_view.hpp>
#include <xtensor/xview.hpp>

using namespace treadle;

namespace {

BoundModel doubled() {
  Builder g;
  g.output("y", scale(g.input("x", f32, {batch, seq, 4}), 2.0));
  const Graph graph = g.finish();
  BoundModel model(graph, Parameters{}, {.backend = "simd"});
  model.bind_dims({{"batch", 2}, {"seq", 3}});
  return model;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(xtensor)

BOOST_AUTO_TEST_CASE(containers_in_and_out) {
  BoundModel model = doubled();
  xt::xtensor<float, 3> x = xt::arange<float>(24).reshape({2, 3, 4});
  const xt::xtensor<float, 3> y = run<float, 3>(model, {{"x", view(x)}}, "y");
  BOOST_TEST(y.shape()[1] == 3u);
  for (std::size_t i = 0; i < 24; ++i) BOOST_TEST(y.data()[i] == 2.0f * static_cast<float>(i));
  const xt::xarray<float> dynamic = x;
  BOOST_TEST((run<float, 3>(model, {{"x", view(dynamic)}}, "y") == y));
}

BOOST_AUTO_TEST_CASE(views_are_read_where_they_are) {
  BoundModel model = doubled();
  xt::xtensor<float, 3> large = xt::arange<float>(2 * 7 * 10).reshape({2, 7, 10});
  auto part = xt::strided_view(large, {xt::all(), xt::range(1, 7, 2), xt::range(5, 9)});
  const TensorView v = view(part);
  BOOST_TEST(v.as<float>() == large.data() + 15);
  BOOST_TEST(v.strides[1] == 20);
  const auto y = run<float, 3>(model, {{"x", v}}, "y");
  for (std::size_t b = 0; b < 2; ++b)
    for (std::size_t i = 0; i < 3; ++i)
      for (std::size_t j = 0; j < 4; ++j) BOOST_TEST(y(b, i, j) == 2 * large(b, 1 + 2 * i, 5 + j));
}

BOOST_AUTO_TEST_CASE(dtypes) {
  xt::xtensor<std::int32_t, 1> ids = {1, 2};
  xt::xtensor<bool, 2> keep = {{true, false}};
  BOOST_TEST((view(ids).dtype == i32));
  BOOST_TEST((view(keep).dtype == boolean));
}

BOOST_AUTO_TEST_CASE(wrong_ranks_have_a_sentence) {
  BoundModel model = doubled();
  xt::xtensor<float, 3> x = xt::zeros<float>({2, 3, 4});
  BOOST_CHECK_EXCEPTION((run<float, 2>(model, {{"x", view(x)}}, "y")), Error, [](const Error& e) {
    return std::string(e.what()) == "output 'y' is f32 of rank 3; asked for was f32 of rank 2";
  });
  const xt::xarray<float> deep = xt::zeros<float>({1, 1, 1, 1, 1, 1, 1});
  BOOST_CHECK_EXCEPTION(view(deep), Error, [](const Error& e) {
    return std::string(e.what()) == "an xtensor of rank 7: at most 6 dims are possible";
  });
}

BOOST_AUTO_TEST_SUITE_END()
