// Pooling of every ISA against plain loops in float64.

#include "support.hpp"

using namespace kernel_test;

BOOST_AUTO_TEST_SUITE(pooling)

BOOST_AUTO_TEST_CASE(mean_and_max) {
  for (const bool max : {false, true})
    for (const Index width : {0, 1, 4, 15, 16, 17, 63, 64, 65, 130})
      for (const Index length : {0, 1, 7, 50}) {
        Tensor x({2, 3, length, width}, 2), out({2, 3, 1, width}, 1);
        x.normal(1, 3.0f);
        std::vector<std::int32_t> counts{static_cast<std::int32_t>(length) + 5, 2};  // more than there are: all
        TensorView lengths = dense_view(counts.data(), i32, std::vector<Index>{2, 3, 1, 1});
        lengths.strides = {1, 0, 0, 0};
        if (length == 7 && width > 1) x.at({0, 1, 3, 1}) = quiet_nan;
        std::vector<double> expected;
        for (Index b = 0; b < 2; ++b)
          for (Index h = 0; h < 3; ++h)
            for (Index c = 0; c < width; ++c) {
              const Index count = std::min<Index>(counts[static_cast<std::size_t>(b)], length);
              double sum = 0, top = -INFINITY;
              for (Index i = 0; i < count; ++i) {
                const auto v = static_cast<double>(x.at({b, h, i, c}));
                sum += v;
                top = std::isnan(v) || v > top ? v : top;
              }
              expected.push_back(count == 0 ? 0 : max ? top : sum / static_cast<double>(count));
            }
        const kernel::Pool a{x.view, lengths, out.view, max ? kernel::Pooling::max : kernel::Pooling::mean};
        for (const Table* t : tables()) BOOST_TEST_CONTEXT(t->isa << " " << length << " x " << width) {
            out.fill(-7.0f);
            run(t->pool, a);
            BOOST_TEST(distance(out.values(), expected) <= (max ? 0.0 : 2e-6));
            BOOST_TEST(out.intact());
            const auto whole = out.values();
            out.fill(-7.0f);
            run(t->pool, a, 1);
            BOOST_TEST(same_bits(whole, out.values()));
          }
      }
}

BOOST_AUTO_TEST_SUITE_END()
