// Several models of one checkpoint: one file, one set of packed weights, the same bits; and what each layer hands on.

#include <models/support.hpp>

#include <treadle/backends/packed_store.hpp>

using namespace treadle;
using namespace treadle::test;

BOOST_AUTO_TEST_SUITE(sharing)

BOOST_AUTO_TEST_CASE(models_of_one_checkpoint_share_memory_and_packed_weights) {
  for (const char* name : {"bert", "gpt2", "llama"}) {
    BOOST_TEST_CONTEXT(name) {
      const Tensors inputs = inputs_of(golden(name));
      const models::LoadedModel first = load(golden(name), inputs);
      const Tensors want = run(golden(name), inputs);

      models::LoadOptions options;
      for (const auto& input : inputs) options.given_inputs.push_back(input.first);
      options.every_layer = true;
      options.shared = &first;
      const models::LoadedModel second = models::load_checkpoint(golden(name), options);
      BOOST_TEST(second.file == first.file);
      for (const std::string& parameter : first.parameters.names())
        BOOST_TEST(second.parameters.find(parameter).data == first.parameters.find(parameter).data);

      PackedStore store;
      std::size_t packed = 0;
      for (const models::LoadedModel* m : {&first, &second}) {
        BoundModel model = m->bind({.backend = "simd"});
        const PackedStore::Scope scope(store);
        Tensors got = models::run_model(model, *m, inputs);
        for (const auto& [output, tensor] : want) BOOST_TEST((got.at(output).data == tensor.data), output);
        if (m == &first) {
          packed = store.size();
          BOOST_TEST(packed > 4u);
        } else {
          const io::Tensor& layers = got.at("layers");
          const io::Tensor& hidden = got.at("hidden");
          BOOST_REQUIRE(layers.shape.size() == 4u);
          BOOST_TEST(layers.shape[0] == 2);
          BOOST_TEST(layers.size() == 2 * hidden.size());
        }
      }
      BOOST_TEST(store.size() == packed);
      BOOST_TEST(PackedStore::current() == nullptr);
    }
  }
}

/// The parameter of another memory is another weight, and no store means none is kept.
BOOST_AUTO_TEST_CASE(other_memory_is_packed_for_itself) {
  Builder g;
  g.output("y", linear("w", g.input("x", f32, {2, 3}), {.width = 5, .bias = false}));
  const Graph graph = g.finish();
  io::Tensor x(f32, {2, 3}), y(f32, {2, 5});
  for (float& v : x.as<float>()) v = 1;
  const auto result = [&](float value) {
    Parameters parameters;
    parameters.own("w.weight", {5, 3}, std::vector<float>(15, value));
    BoundModel model(graph, parameters, {.backend = "simd"});
    model.run({{"x", x.view()}}, {{"y", y.view()}});
    return std::pair{parameters, y.as<float>()[0]};
  };
  PackedStore store;
  {
    const PackedStore::Scope scope(store);
    const auto [one, three] = result(1);
    const auto [two, six] = result(2);
    BOOST_TEST(three == 3.0f);
    BOOST_TEST(six == 6.0f);
    BOOST_TEST(store.size() == 2u);
  }
  result(3);
  BOOST_TEST(store.size() == 2u);
}

BOOST_AUTO_TEST_SUITE_END()
