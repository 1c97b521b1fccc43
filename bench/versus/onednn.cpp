// oneDNN's matrix products with the weights brought into its own order beforehand, behind C functions. Debian 12 has
// version 2, Debian 13 version 3, which makes a primitive in one step instead of two.

#include <dnnl.hpp>

#include <cstdint>
#include <exception>
#include <string>
#include <unordered_map>

namespace {
using dnnl::memory;

std::string last_error;

struct Product {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  memory x, weight, out;
  dnnl::primitive primitive;
  std::unordered_map<int, memory> arguments;

  /// x [rows, in], weight [out, in] (inner_product) or its transposed view (matmul), out [rows, out].
  template <class Descriptor>
  void prepare(const Descriptor& pd, float* x_data, const memory::desc& given_weight, float* weight_data,
               float* out_data) {
    x = memory(pd.src_desc(), engine, x_data);
    out = memory(pd.dst_desc(), engine, out_data);
    memory given(given_weight, engine, weight_data);
    weight = memory(pd.weights_desc(), engine);
    dnnl::reorder(given, weight).execute(stream, given, weight);
    stream.wait();
    arguments = {{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, weight}, {DNNL_ARG_DST, out}};
  }
};
}  // namespace

extern "C" {

const char* versus_onednn_error() { return last_error.c_str(); }

/// The library's version, major · 10000 + minor · 100 + patch.
int versus_onednn_version() {
  const dnnl_version_t* v = dnnl_version();
  return v->major * 10000 + v->minor * 100 + v->patch;
}

/// `kind` 0: matmul, 1: inner_product.
void* versus_onednn_product(int kind, std::int64_t rows, std::int64_t in, std::int64_t outs, float* x, float* weight,
                            float* out) {
  using tag = memory::format_tag;
  constexpr auto f32 = memory::data_type::f32;
  auto* p = new Product;
  try {
    const memory::desc x_desc({rows, in}, f32, tag::ab), out_desc({rows, outs}, f32, tag::ab);
    if (kind == 0) {
      const memory::desc any({in, outs}, f32, tag::any), given({in, outs}, f32, tag::ba);
#if DNNL_VERSION_MAJOR >= 3
      const dnnl::matmul::primitive_desc pd(p->engine, x_desc, any, out_desc);
#else
      const dnnl::matmul::primitive_desc pd(dnnl::matmul::desc(x_desc, any, out_desc), p->engine);
#endif
      p->prepare(pd, x, given, weight, out);
      p->primitive = dnnl::matmul(pd);
    } else {
      const memory::desc any({outs, in}, f32, tag::any), given({outs, in}, f32, tag::ab);
      constexpr auto inference = dnnl::prop_kind::forward_inference;
#if DNNL_VERSION_MAJOR >= 3
      const dnnl::inner_product_forward::primitive_desc pd(p->engine, inference, x_desc, any, out_desc);
#else
      const dnnl::inner_product_forward::primitive_desc pd(
          dnnl::inner_product_forward::desc(inference, x_desc, any, out_desc), p->engine);
#endif
      p->prepare(pd, x, given, weight, out);
      p->primitive = dnnl::inner_product_forward(pd);
    }
    return p;
  } catch (const std::exception& e) {
    last_error = e.what();
    delete p;
    return nullptr;
  }
}

int versus_onednn_run(void* product) {
  auto* p = static_cast<Product*>(product);
  try {
    p->primitive.execute(p->stream, p->arguments);
    p->stream.wait();
    return 0;
  } catch (const std::exception& e) {
    last_error = e.what();
    return 1;
  }
}

void versus_onednn_free(void* product) { delete static_cast<Product*>(product); }

}  // extern "C"
