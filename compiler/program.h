/// Program: a compiled model. A cheap handle to immutable data; made by `compile`, read by planners
/// and trainers.
///
/// PR-1: a Program owns copies of the module's parameters and buffers, as they were when compiled;
///      trainers copy them.
/// PR-2: there is no empty Program: moving one copies the handle.
/// PR-3: all copies of a handle share what was captured for other shapes (variants.h) and in
///      evaluation mode (evaluations.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "stagecraft/scheduler/stage_graph.h"

namespace stagecraft {

struct CompiledProgram;
struct CutReport;
class Evaluations;
class Variants;

class Program {
 public:
  /// Errors: UsageArgument for null.
  explicit Program(std::shared_ptr<const CompiledProgram> compiled,
                   std::shared_ptr<Variants> variants = nullptr,
                   std::shared_ptr<Evaluations> evaluations = nullptr);
  Program(const Program&) = default;  // keeps PR-2: with these there is no move
  Program& operator=(const Program&) = default;
  ~Program() = default;

  /// The stages, who feeds whom, and which of them have a backward.
  [[nodiscard]] const StageGraph& stage_graph() const;
  [[nodiscard]] int microbatches() const;
  /// How many shapes of microbatches it was captured for by now.
  [[nodiscard]] int shapes() const;
  /// Names of the parameters, in the module's order.
  [[nodiscard]] std::vector<std::string> parameter_names() const;
  /// Where it was cut, and what stages and operators cost where that was measured.
  [[nodiscard]] const CutReport& cut() const;
  /// Stages, what crosses between them, bytes per edge, parameters per stage. For people.
  [[nodiscard]] std::string explain() const;
  /// The captured operators, one line each.
  [[nodiscard]] std::string graph_text() const;

  [[nodiscard]] const CompiledProgram& compiled() const { return *compiled_; }
  [[nodiscard]] const std::shared_ptr<const CompiledProgram>& shared() const { return compiled_; }
  /// Null where no other shape can be captured.
  [[nodiscard]] const std::shared_ptr<Variants>& variants() const { return variants_; }
  /// Null where there is no module to evaluate.
  [[nodiscard]] const std::shared_ptr<Evaluations>& evaluations() const { return evaluations_; }

 private:
  std::shared_ptr<const CompiledProgram> compiled_;
  std::shared_ptr<Variants> variants_;
  std::shared_ptr<Evaluations> evaluations_;
};

}  // namespace stagecraft
