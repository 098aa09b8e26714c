/// MadeArchive is an archive of torch.export that a test makes record by record, so that each
/// record can be wrong.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <nlohmann/json.hpp>

#include "stagecraft/compiler/import/load_model.h"

namespace stagecraft::testing {

using Json = nlohmann::json;

/// Returns {"as_tensor": {"name": ...}}.
[[nodiscard]] Json tensor_argument(const std::string& name);
/// `inputs`: {{"self", argument}, ...}.
[[nodiscard]] Json node(const std::string& name,
                        const std::string& target,
                        const std::vector<std::pair<std::string, Json>>& inputs,
                        const std::vector<Json>& outputs);
/// Returns the facts of a contiguous tensor.
[[nodiscard]] Json tensor_meta(const at::Tensor& tensor);

struct MadeArchive {
  Json program;                                ///< models/model.json
  Json weights, constants;                     ///< the configurations of both
  std::map<std::string, std::string> records;  ///< bytes of tensors and all else, by name
  bool compressed = false;

  /// Makes an empty program of the right version.
  MadeArchive();

  /// Adds a value of the graph with a tensor's facts.
  void value(const std::string& name, const at::Tensor& like);
  void user_input(const std::string& name, const at::Tensor& like);
  void parameter(const std::string& fqn, const at::Tensor& tensor);
  void buffer(const std::string& fqn, const at::Tensor& tensor, bool persistent = true);
  void constant(const std::string& fqn, const at::Tensor& tensor);
  void add(Json node) { nodes().push_back(std::move(node)); }
  void output(const std::string& name);

  [[nodiscard]] Json& graph() { return program["graph_module"]["graph"]; }
  [[nodiscard]] Json& nodes() { return graph()["nodes"]; }

  [[nodiscard]] std::string bytes() const;
  [[nodiscard]] ModelFile read() const;

 private:
  void stored(const std::string& fqn,
              const at::Tensor& tensor,
              bool is_parameter,
              const std::string& folder,
              Json& config,
              Json spec);
};

/// Returns mean((x W^T + b - y)^2) with a buffer `steps` that counts its runs: "x" [4, 3], "y" [4,
/// 2].
[[nodiscard]] MadeArchive small_archive();
[[nodiscard]] at::Tensor small_weight();

}  // namespace stagecraft::testing
