/// ExportedGraph: a graph of an exported program bound to LibTorch's operators, and its run.
///
/// Bound once, when the file is read: names become slots, targets operators, and what is not
/// supported is told of all nodes at once. A run calls the operators one after the other through
/// the dispatcher, so that capture sees them as it sees a module's, and drops every value after its
/// last use. Graphs that stand in others (`no_grad`, autocast) run in the mode of their node.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/ivalue.h>

#include "stagecraft/compiler/import/exported_program.h"
#include "stagecraft/compiler/import/unsupported.h"

namespace stagecraft::exported {

class ExportedGraph {
 public:
  /// What is known of an input before any run: constants are no reason to refuse what reads values.
  struct InputFacts {
    std::vector<bool> dependent;  ///< by input: whether it differs between microbatches or steps
  };

  /// Appends to `unsupported` what cannot be run. Requires: `graph` outlives the constructor.
  /// Errors: UsageFile for a graph that contradicts itself: a value without origin, or with two.
  ExportedGraph(const Graph& graph,
                const InputFacts& inputs,
                std::vector<Unsupported>& unsupported);
  ~ExportedGraph();
  ExportedGraph(ExportedGraph&&) noexcept;
  ExportedGraph& operator=(ExportedGraph&&) noexcept;

  /// Returns the graph's outputs, lists flattened. `inputs`: as many as the graph has.
  /// Requires: the constructor found nothing unsupported.
  /// Errors: CompileCapture, naming the node, for what an operator throws.
  [[nodiscard]] std::vector<c10::IValue> run(std::vector<c10::IValue> inputs) const;

  /// By input: whether some node writes it, or a view of it.
  [[nodiscard]] const std::vector<bool>& written_inputs() const;
  /// Operators of this graph and those within, by name, "aten::linear", with their numbers.
  [[nodiscard]] const std::map<std::string, int>& operators() const;
  /// Whether operators are told to train (dropout, batch_norm), and whether some are told not to.
  [[nodiscard]] bool some_train() const;
  [[nodiscard]] bool some_evaluate() const;

 private:
  class Binder;
  struct Bound;
  std::unique_ptr<Bound> bound_;
};

}  // namespace stagecraft::exported
