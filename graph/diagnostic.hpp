#pragma once
// The first mistake of a model as one compiler error.
//
// Compilers print the arguments of an undefined template: exactly sized pieces of text, leaf first because clang cuts
// long strings. The type is computed through an alias inside the static_assert of `Model`; measured against throwing in
// constant evaluation (32–78 lines of output) this gives 6–8 lines from g++ and 11–14 from clang.

#include <treadle/graph/graph.hpp>

#include <array>

namespace treadle::diagnostic {

template <std::size_t N>
struct leaf {
  char text[N];
};
template <std::size_t N>
struct scope {
  char text[N];
};
template <std::size_t N>
struct in_op {
  char text[N];
};
template <std::size_t N>
struct got {
  char text[N];
};
template <std::size_t N>
struct expected {
  char text[N];
};
struct line {
  int number;
};

// One name per rule. Never defined: to name one is the error.
// clang-format off
template <leaf, scope, in_op, got, expected, line> struct model_has_wrong_width;
template <leaf, scope, in_op, got, expected, line> struct model_has_shape_mismatch;
template <leaf, scope, in_op, got, expected, line> struct model_has_heads_that_do_not_divide_the_width;
template <leaf, scope, in_op, got, expected, line> struct model_has_heads_that_do_not_divide_the_heads;
template <leaf, scope, in_op, got, expected, line> struct model_has_query_and_key_head_dims_that_differ;
template <leaf, scope, in_op, got, expected, line> struct model_has_an_unknown_dim;
template <leaf, scope, in_op, got, expected, line> struct model_has_a_duplicate_name;
template <leaf, scope, in_op, got, expected, line> struct model_has_no_output;
template <leaf, scope, in_op, got, expected, line> struct model_has_a_mask_of_wrong_rank;
template <leaf, scope, in_op, got, expected, line> struct model_has_a_wrong_rank;
template <leaf, scope, in_op, got, expected, line> struct model_has_a_wrong_dtype;
template <leaf, scope, in_op, got, expected, line> struct model_has_a_bad_attribute;
template <leaf, scope, in_op, got, expected, line> struct model_has_a_lookup_without_an_input;
template <leaf, scope, in_op, got, expected, line> struct model_has_a_function_that_cannot_be_traced;
template <leaf, scope, in_op, got, expected, line> struct model_has_a_repeat_that_changes_the_shape;
template <leaf, scope, in_op, got, expected, line> struct model_has_more_nodes_than_its_capacity;
// clang-format on

/// Text number `Part` of the error in a carrier: 0 leaf, 1 scope, 2 op, 3 got, 4 expected.
template <const auto& Carrier, int Part>
consteval std::string_view text() {
  const GraphView g = Carrier.view();
  const ModelError& e = Carrier.error;
  if (Part == 0) return g.strings[e.leaf];
  if (Part == 1) return g.strings[e.scope];
  if (Part == 2) return name(e.op);
  if (Part == 3) return g.strings[e.got];
  return g.strings[e.expected];
}

template <template <std::size_t> class Piece, const auto& Carrier, int Part>
consteval auto piece() {
  constexpr std::string_view t = text<Carrier, Part>();
  Piece<t.size() + 1> p{};
  for (std::size_t i = 0; i < t.size(); ++i) p.text[i] = t[i];
  p.text[t.size()] = '\0';  // written out: clang prints an array with an implicit tail as numbers
  return p;
}

struct model_is_right {};

template <const auto& Carrier>
consteval auto report() {
  constexpr error_kind kind = Carrier.error.kind;
  if constexpr (kind == error_kind::none) {
    return static_cast<model_is_right*>(nullptr);
  } else {
    constexpr auto a = piece<leaf, Carrier, 0>();
    constexpr auto b = piece<scope, Carrier, 1>();
    constexpr auto c = piece<in_op, Carrier, 2>();
    constexpr auto d = piece<got, Carrier, 3>();
    constexpr auto e = piece<expected, Carrier, 4>();
    constexpr line l{Carrier.error.line};
    if constexpr (kind == error_kind::wrong_width)
      return static_cast<model_has_wrong_width<a, b, c, d, e, l>*>(nullptr);
    else if constexpr (kind == error_kind::shape_mismatch)
      return static_cast<model_has_shape_mismatch<a, b, c, d, e, l>*>(nullptr);
    else if constexpr (kind == error_kind::heads_do_not_divide_width)
      return static_cast<model_has_heads_that_do_not_divide_the_width<a, b, c, d, e, l>*>(nullptr);
    else if constexpr (kind == error_kind::heads_do_not_divide)
      return static_cast<model_has_heads_that_do_not_divide_the_heads<a, b, c, d, e, l>*>(nullptr);
    else if constexpr (kind == error_kind::head_dim_mismatch)
      return static_cast<model_has_query_and_key_head_dims_that_differ<a, b, c, d, e, l>*>(nullptr);
    else if constexpr (kind == error_kind::unknown_dim)
      return static_cast<model_has_an_unknown_dim<a, b, c, d, e, l>*>(nullptr);
    else if constexpr (kind == error_kind::duplicate_name)
      return static_cast<model_has_a_duplicate_name<a, b, c, d, e, l>*>(nullptr);
    else if constexpr (kind == error_kind::output_never_set)
      return static_cast<model_has_no_output<a, b, c, d, e, l>*>(nullptr);
    else if constexpr (kind == error_kind::wrong_mask_rank)
      return static_cast<model_has_a_mask_of_wrong_rank<a, b, c, d, e, l>*>(nullptr);
    else if constexpr (kind == error_kind::wrong_rank)
      return static_cast<model_has_a_wrong_rank<a, b, c, d, e, l>*>(nullptr);
    else if constexpr (kind == error_kind::wrong_dtype)
      return static_cast<model_has_a_wrong_dtype<a, b, c, d, e, l>*>(nullptr);
    else if constexpr (kind == error_kind::unknown_table)
      return static_cast<model_has_a_lookup_without_an_input<a, b, c, d, e, l>*>(nullptr);
    else if constexpr (kind == error_kind::untraceable)
      return static_cast<model_has_a_function_that_cannot_be_traced<a, b, c, d, e, l>*>(nullptr);
    else if constexpr (kind == error_kind::carried_shape_changes)
      return static_cast<model_has_a_repeat_that_changes_the_shape<a, b, c, d, e, l>*>(nullptr);
    else if constexpr (kind == error_kind::too_many_nodes)
      return static_cast<model_has_more_nodes_than_its_capacity<a, b, c, d, e, l>*>(nullptr);
    else
      return static_cast<model_has_a_bad_attribute<a, b, c, d, e, l>*>(nullptr);
  }
}

template <const auto& Carrier>
using report_t = std::remove_pointer_t<decltype(report<Carrier>())>;

}  // namespace treadle::diagnostic
