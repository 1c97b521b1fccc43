// The ten example models as frozen tables (static) and as graphs made at run time (dynamic): the same text, and the
// same bits on every ISA.

#include "support.hpp"

#include <treadle/backends/model.hpp>
#include <treadle/graph/text.hpp>
#include <treadle/models/examples.hpp>

using namespace treadle;
using namespace treadle::test;

namespace {

struct TinyGpt : Model<models::tiny_gpt> {};
struct Encoder : Model<models::encoder> {};
struct EncoderDecoder : Model<models::encoder_decoder> {};
struct Vit : Model<models::vit> {};
struct DecoderStep : Model<models::decoder_step> {};
struct LinearTransformer : Model<models::linear_transformer> {};
struct LongformerLike : Model<models::longformer_like> {};
struct PackedDocuments : Model<models::packed_documents> {};
struct WrittenOut : Model<models::written_out> {};
struct Nested : Model<models::nested> {};
struct FirstDraft : Model<models::first_draft> {};
struct LinearWrittenOut : Model<models::linear_written_out> {};

static_assert(TinyGpt::optimised.count(op::attention) == 1);
static_assert(WrittenOut::source.count(op::attention) == 0 && WrittenOut::optimised.count(op::attention) == 1);

struct Frozen {
  std::string_view name;
  GraphView source, optimised;
  BoundModel (*bind)(const Parameters&, BindOptions);
};
template <class M>
Frozen frozen(std::string_view name) {
  return {name, M::source.view(), M::optimised.view(),
          [](const Parameters& p, BindOptions options) { return M::bind(p, options); }};
}

std::vector<Frozen> every_model() {
  return {frozen<TinyGpt>("tiny_gpt"),
          frozen<Encoder>("encoder"),
          frozen<EncoderDecoder>("encoder_decoder"),
          frozen<Vit>("vit"),
          frozen<DecoderStep>("decoder_step"),
          frozen<LinearTransformer>("linear_transformer"),
          frozen<LongformerLike>("longformer_like"),
          frozen<PackedDocuments>("packed_documents"),
          frozen<WrittenOut>("written_out"),
          frozen<Nested>("nested"),
          frozen<FirstDraft>("first_draft"),
          frozen<LinearWrittenOut>("linear_written_out")};
}

Results run_bound(BoundModel model, GraphView g, const Lengths& dims) {
  model.bind_dims(dims);
  const Tensors in = inputs_of(g, dims, 21);
  Tensors out = outputs_of(g, dims);
  model.run(named(in), named(out));
  return values(out);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(frozen_models)

BOOST_AUTO_TEST_CASE(every_example_is_here) {
  const auto list = every_model();
  BOOST_REQUIRE(list.size() == std::size(models::all));
  for (std::size_t i = 0; i < list.size(); ++i) BOOST_TEST(list[i].name == models::all[i].name);
}

BOOST_AUTO_TEST_CASE(the_compiler_and_the_program_build_the_same_graphs) {
  const auto list = every_model();
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Graph declared = models::all[i].build(), better = optimise(declared);
    BOOST_TEST(to_text(list[i].source) == to_text(declared));
    BOOST_TEST(to_text(list[i].optimised) == to_text(better));
  }
}

BOOST_AUTO_TEST_CASE(same_bits_on_every_isa) {
  const Lengths all{{"batch", 2},   {"seq", 33}, {"source_len", 19}, {"target_len", 7},
                    {"patches", 9}, {"past", 3}, {"fresh", 5}};
  const auto list = every_model();
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Graph better = optimise(models::all[i].build());
    const Parameters parameters = Parameters::random(better, 4);
    Lengths dims;
    for (const NamedSize& s : all)
      for (const std::string& name : dim_names(better))
        if (s.name == name) dims.push_back(s);
    for (const std::string& isa : isas())
      for (const std::string_view backend : {"simd", "tbb"})
        BOOST_TEST_CONTEXT(list[i].name << " " << isa << " " << backend) {
          const BindOptions options{.backend = backend, .isa = isa};
          BOOST_TEST(difference(run_bound(list[i].bind(parameters, options), list[i].optimised, dims),
                                run_bound(BoundModel(better, parameters, options), better, dims)) == 0.0);
        }
  }
}

BOOST_AUTO_TEST_SUITE_END()
