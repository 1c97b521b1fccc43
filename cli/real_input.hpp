#pragma once
// Q, K and V from files: the example that is shipped, or a folder that the user names.

#include "attention_model.hpp"

#include <string>
#include <vector>

namespace treadle::cli {

struct Qkv {
  std::string name;  ///< of the folder
  AttentionShape shape;
  std::vector<float> q, k, v;
};

/// Reads q.npy, k.npy and v.npy, f32 [batch, heads, length, head_dim] (k and v may have fewer heads that divide those
/// of q). Throws Error.
Qkv load_qkv(const std::string& folder);

/// The folder of the example that is shipped; "" if it is nowhere to be found.
std::string example_folder();

}  // namespace treadle::cli
