#pragma once
// A call of a case as a graph with its inputs and parameters: what `verify` runs on every backend.

#include <treadle/backends/parameters.hpp>
#include <treadle/io/case.hpp>
#include <treadle/ops/rules.hpp>

#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace treadle::cli {

/// What the call asks for does not exist (yet): the sentence names the op, attribute or output.
struct NotSupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// An input of the graph. Numbers are held in double (integers and booleans too) and converted to what the graph takes.
struct Feed {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::vector<double> data;
  std::vector<std::int64_t> strides = {};  ///< in elements; empty: row-major
  std::int64_t offset = 0;                 ///< of the first element
};

/// One of several runs of a graph, between which its states are kept: the lengths and the inputs of this one.
struct CallStep {
  std::map<std::string, std::int64_t> dims;
  std::vector<Feed> inputs;
};

struct CallGraph {
  Graph graph;
  std::vector<Feed> inputs, parameters;
  std::vector<CallStep> steps;       ///< empty: one run with `inputs`. Results are joined along dim 1 (batch is 1).
  std::vector<std::string> outputs;  ///< names of the call's results that the graph gives
  std::string missing;               ///< results that are required but not given, and why; empty: none
};

/// The call while it becomes a graph. Attributes are taken one by one; one that nobody took is not supported.
class CallBuilder {
 public:
  explicit CallBuilder(const io::Call& call) : call_(call) {}

  Builder g;

  const io::Call& call() const { return call_; }
  // --- attributes
  bool has(const std::string& name) const {
    return call_.attributes.contains(name) && !call_.attributes.at(name).is_null();
  }
  const nlohmann::json& take(const std::string& name);
  bool flag(const std::string& name, bool otherwise = false);
  std::int64_t integer(const std::string& name, std::optional<std::int64_t> otherwise = {});
  double number(const std::string& name, std::optional<double> otherwise = {});
  std::string text(const std::string& name, std::optional<std::string> otherwise = {});
  std::vector<std::int64_t> integers(const std::string& name);
  /// The attribute must have this value (or be absent).
  void only(const std::string& name, const nlohmann::json& value);
  void ignore(const std::string& name) { taken_.insert(name); }

  // --- tensors
  bool given(const std::string& name) const { return call_.inputs.contains(name); }
  /// The tensor of the case; throws Error if it is missing.
  const io::Tensor& tensor(const std::string& name) const;
  std::vector<double> values(const std::string& name) const;
  /// A graph input from the case's tensor, with the shape given or its own.
  Node input(const std::string& name, DType dtype = f32, std::optional<std::vector<std::int64_t>> shape = {});
  Node input(Feed feed);
  void step(CallStep s) { out_.steps.push_back(std::move(s)); }
  /// A parameter from the case's tensor.
  Node parameter(const std::string& name);
  Node parameter_transposed(const std::string& name);  ///< of a weight that is given as [in, out]
  Node parameter(const std::string& name, std::vector<std::int64_t> shape, std::vector<double> data);
  Node linear(Node x, Node weight, Node bias = {});
  Node layer_norm(Node x, Node gamma, Node beta, double eps);

  bool wants(const std::string& output) const;
  void output(const std::string& name, Node x);

  /// Throws NotSupported for attributes that nobody took; lists required outputs that are not given.
  CallGraph finish();

 private:
  const io::Call& call_;
  std::set<std::string> taken_;
  CallGraph out_;
};

/// Throws NotSupported, or Error for a case that is wrong (missing tensors, shapes that do not fit).
CallGraph graph_of(const io::Call& call);

// The families, in files of their own.
using CallFunction = void (*)(CallBuilder&);
const std::map<std::string, CallFunction>& attention_calls();
const std::map<std::string, CallFunction>& elementwise_calls();
const std::map<std::string, CallFunction>& layer_calls();
const std::map<std::string, CallFunction>& recurrent_calls();
const std::map<std::string, CallFunction>& sequence_calls();

/// The activation of a feed-forward case; "swiglu" and its kin name that of the gate.
activation feed_forward_activation(CallBuilder& b, const std::string& name);

/// The shape with ones in front, up to `rank`.
std::vector<std::int64_t> with_front(std::vector<std::int64_t> shape, std::size_t rank);

}  // namespace treadle::cli
