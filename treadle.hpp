#pragma once
// Treadle: declare a Transformer as a graph, let passes rewrite it, run it. Includes no xtensor, xsimd or TBB.

#include <treadle/backends/bound_model.hpp>
#include <treadle/backends/model.hpp>
#include <treadle/backends/parameters.hpp>
#include <treadle/graph/builder.hpp>
#include <treadle/graph/mask/conventions.hpp>
#include <treadle/graph/mask/patterns.hpp>
#include <treadle/graph/scalar/derivative.hpp>
#include <treadle/ops/hierarchical.hpp>
#include <treadle/ops/linformer.hpp>
#include <treadle/ops/longformer.hpp>
#include <treadle/ops/nystrom.hpp>
#include <treadle/ops/pooled_attention.hpp>
#include <treadle/ops/routing_attention.hpp>
#include <treadle/ops/rules.hpp>
#include <treadle/ops/top_k_attention.hpp>
#include <treadle/passes/pipeline.hpp>
