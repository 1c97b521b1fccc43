#pragma once
// Treadle: declare a Transformer as a graph, let passes rewrite it, run it. Includes no xtensor, xsimd or TBB.

#include <treadle/backends/bound_model.hpp>
#include <treadle/backends/model.hpp>
#include <treadle/backends/parameters.hpp>
#include <treadle/graph/builder.hpp>
#include <treadle/graph/mask/conventions.hpp>
#include <treadle/graph/scalar/derivative.hpp>
#include <treadle/ops/rules.hpp>
#include <treadle/passes/pipeline.hpp>
