/// ExportedGraph is a graph of an exported program that is bound to LibTorch's operators and can
/// run.
///
/// It is bound once, when the file is read: names become slots, targets become operators, and all
/// unsupported nodes are reported at once. A run calls the operators one after the other through
/// the dispatcher, so that capture sees them as it sees a module's operators. It drops every value
/// after its last use. Graphs inside other graphs (`no_grad`, autocast) run in the mode of their
/// node.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/ivalue.h>

#include "stagecraft/compiler/import/archive/unsupported.h"
#include "stagecraft/compiler/import/exported/exported_program.h"

namespace stagecraft::exported {

class ExportedGraph {
 public:
  /// InputFacts holds the facts about inputs before any run. An operator that reads values is not
  /// refused if these are constants.
  struct InputFacts {
    std::vector<bool> dependent;  ///< by input: whether it differs between microbatches or steps
  };

  /// Appends to `unsupported` the parts that cannot run.
  /// Requires: `graph` outlives the constructor.
  /// Errors: UsageFile for a graph that contradicts itself: a value without origin, or with two.
  ExportedGraph(const Graph& graph,
                const InputFacts& inputs,
                std::vector<Unsupported>& unsupported);
  ~ExportedGraph();
  ExportedGraph(ExportedGraph&&) noexcept;
  ExportedGraph& operator=(ExportedGraph&&) noexcept;

  /// Returns the graph's outputs, with lists flattened. `inputs`: as many as the graph has.
  /// Requires: the constructor found nothing unsupported.
  /// Errors: CompileCapture, naming the node, for errors that an operator throws.
  [[nodiscard]] std::vector<c10::IValue> run(std::vector<c10::IValue> inputs) const;

  /// Returns by input whether some node writes it, or a view of it.
  [[nodiscard]] const std::vector<bool>& written_inputs() const;
  /// Returns how many operators of each name ("aten::linear") this graph and the graphs inside it
  /// have.
  [[nodiscard]] const std::map<std::string, int>& operators() const;
  /// Return whether some operators (dropout, batch_norm) are set to train, and whether some are set
  /// not to.
  [[nodiscard]] bool some_train() const;
  [[nodiscard]] bool some_evaluate() const;

 private:
  class Binder;
  struct Bound;
  std::unique_ptr<Bound> bound_;
};

}  // namespace stagecraft::exported
