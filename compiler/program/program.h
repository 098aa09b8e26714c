/// Program is a compiled model: a cheap handle to immutable data. `compile` makes it; planners and
/// trainers read it.
///
/// PR-1: a Program owns copies of the module's parameters and buffers, as they were when compiled;
///       trainers copy them.
/// PR-2: there is no empty Program: moving one copies the handle.
/// PR-3: all copies of a handle share the captures for other shapes (shape_captures.h) and in
///       evaluation mode (evaluations.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "stagecraft/scheduler/model/stage_graph.h"

namespace stagecraft {

struct CompiledProgram;
struct CutReport;
class Evaluations;
class ShapeCaptures;

class Program {
 public:
  /// Requires: `compiled` is not null. Errors: UsageArgument for null.
  explicit Program(std::shared_ptr<const CompiledProgram> compiled,
                   std::shared_ptr<ShapeCaptures> shape_captures = nullptr,
                   std::shared_ptr<Evaluations> evaluations = nullptr);
  Program(const Program&) = default;  // keeps PR-2: these suppress the move operations
  Program& operator=(const Program&) = default;
  ~Program() = default;

  /// Returns the stages as a schedule lists them, the edges between them, and which of them have a
  /// backward. Those with code on the driver are whole (stage_parts.h).
  [[nodiscard]] const StageGraph& stage_graph() const;
  [[nodiscard]] int microbatches() const;
  /// Returns the names of the parameters, in the module's order.
  [[nodiscard]] std::vector<std::string> parameter_names() const;
  /// Returns the places at which the model was cut, and the costs of stages and operators if they
  /// were measured.
  [[nodiscard]] const CutReport& cut() const;
  /// Returns a text for people: stages, values that cross between them, bytes per edge, parameters
  /// per stage, and the time of each pass of compile.
  [[nodiscard]] std::string explain() const;
  /// Returns the captured operators, one line each.
  [[nodiscard]] std::string graph_text() const;

  [[nodiscard]] const CompiledProgram& compiled() const { return *compiled_; }
  [[nodiscard]] const std::shared_ptr<const CompiledProgram>& shared() const { return compiled_; }
  /// Returns the captures for other shapes; null if no other shape can be captured.
  [[nodiscard]] const std::shared_ptr<ShapeCaptures>& shape_captures() const {
    return shape_captures_;
  }
  /// Returns the evaluations; null if there is no module to evaluate.
  [[nodiscard]] const std::shared_ptr<Evaluations>& evaluations() const { return evaluations_; }

 private:
  std::shared_ptr<const CompiledProgram> compiled_;
  std::shared_ptr<ShapeCaptures> shape_captures_;
  std::shared_ptr<Evaluations> evaluations_;
};

}  // namespace stagecraft
