/// ExportedProgram holds the contents of `models/model.json`, as `torch.export.save` wrote it, as
/// plain data.
///
/// read_program makes it, and ExportedGraph binds it to operators. It keeps everything that a run
/// or a message needs; the numbers of the schema's enumerations are replaced by c10's.
///
/// Source: torch/_export/serde/schema.py, version 8.17.
#pragma once

#include <complex>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <c10/core/Layout.h>
#include <c10/core/MemoryFormat.h>
#include <c10/core/ScalarType.h>

namespace stagecraft::exported {

struct Graph;

struct None {};

/// ValueName is a value of the graph that its inputs or an earlier node made: a tensor, or a number
/// that was symbolic when the program was exported.
struct ValueName {
  std::string name;
};

struct Device {
  std::string type;
};

struct Subgraph {
  std::string name;
  std::shared_ptr<const Graph> graph;
};

/// Foreign is an argument of a kind that no operator of LibTorch takes: as_custom_obj, as_operator,
/// as_string_to_argument, or one that this schema does not have.
struct Foreign {
  std::string what;
};

struct Argument;
struct List {
  std::vector<Argument> elements;
};

struct Argument {
  std::string kind;  ///< the schema's word: "as_tensor", "as_sym_ints"
  std::variant<None,
               ValueName,
               std::int64_t,
               double,
               bool,
               std::complex<double>,
               std::string,
               at::ScalarType,
               at::Layout,
               at::MemoryFormat,
               Device,
               Subgraph,
               Foreign,
               List>
      value;
};

struct NamedArgument {
  std::string name;  ///< as in the operator's schema; empty for higher-order operators
  Argument argument;
};

struct Node {
  std::string name;    ///< "conv2d_1"
  std::string target;  ///< "torch.ops.aten.conv2d.default"
  std::string path;    ///< of the innermost module that contains it, "layers.0.attention"; may be
                       ///< empty
  std::vector<NamedArgument> inputs;
  std::vector<Argument> outputs;
};

/// kUnknownSize replaces a size that was symbolic.
inline constexpr std::int64_t kUnknownSize = -1;

struct TensorFacts {
  at::ScalarType dtype = at::kFloat;
  std::vector<std::int64_t> sizes, strides;
  std::int64_t storage_offset = 0;
  bool requires_grad = false;
  bool strided = true;
};

struct Graph {
  std::vector<Argument> inputs, outputs;
  std::vector<Node> nodes;
  std::map<std::string, TensorFacts, std::less<>> tensors;  ///< by value
  /// By symbolic number: the expression ("s0 + 1", "u0"), or a number if it is known after all.
  std::map<std::string, std::string, std::less<>> symbols;
};

enum class InputKind : std::uint8_t { User, Parameter, Buffer, Constant, Baked, Refused };

struct InputSpec {
  InputKind kind = InputKind::User;
  std::string fqn;  ///< of the parameter, buffer or constant; for Refused, a description
  bool persistent = true;
};

enum class OutputKind : std::uint8_t { User, Loss, BufferWrite, InputWrite, Refused };

struct OutputSpec {
  OutputKind kind = OutputKind::User;
  std::string target;  ///< the buffer, or the name of the input value, that is written; for
                       ///< Refused, the reason
};

struct Program {
  Graph graph;
  std::vector<InputSpec> inputs;    ///< as many as the graph's
  std::vector<OutputSpec> outputs;  ///< as many as the graph's
  std::string torch_version;
  std::string dialect;  ///< "TRAINING", "ATEN", ...
};

/// Payload says where the bytes of a parameter, buffer or constant are.
struct Payload {
  std::string record;  ///< "weight_0"; equal for tensors of one storage
  bool is_parameter = false;
  bool pickled = false;
  TensorFacts facts;  ///< meaningless if pickled
};

using Payloads = std::map<std::string, Payload, std::less<>>;  ///< by full name

}  // namespace stagecraft::exported
