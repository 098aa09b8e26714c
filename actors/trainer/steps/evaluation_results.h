/// evaluation_results combines the tensors that the ranks send for an evaluation, by microbatch:
/// outputs of the model, or metrics.
///
/// The trainer uses it, on its caller's thread, after the step.
#pragma once

#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/crew/known_programs.h"
#include "stagecraft/compiler/shapes/parts.h"
#include "stagecraft/futures/future.h"

namespace stagecraft {

/// EvaluationResults is indexed by result, then by microbatch.
using EvaluationResults = std::vector<std::vector<at::Tensor>>;

/// ResultWait waits for a tensor that a rank sends. It returns false if the tensor has not come in
/// time. Errors: the rank's loss.
using ResultWait = std::function<bool(Rank from, const Future<at::Tensor>& result)>;

/// Waits for the results that have not arrived. `arrived`: one future per result of the plan.
/// Errors: ClusterTimeout if one does not come in time; those of `wait`.
[[nodiscard]] EvaluationResults take_results(const KnownPrograms::Sent& evaluation,
                                             const Layout& layout,
                                             const Parts& parts,
                                             const std::vector<Future<at::Tensor>>& arrived,
                                             const ResultWait& wait);

/// Returns, per result, the parts of all microbatches concatenated in the dimension of their rows
/// (output_rows.h); numbers become one element each.
/// Errors: CompileShape if the parts differ otherwise.
[[nodiscard]] std::vector<at::Tensor> joined(const EvaluationResults& results,
                                             const Parts& parts,
                                             const std::vector<std::int64_t>& row_dimensions);

/// Returns, per output, those of all batches concatenated likewise. Requires: at least one batch.
/// Errors: CompileShape if the batches differ otherwise.
[[nodiscard]] std::vector<at::Tensor> concatenated(
    const std::vector<std::vector<at::Tensor>>& batches,
    const std::vector<std::int64_t>& row_dimensions);

/// Returns, per result, the mean over the samples, in double.
[[nodiscard]] std::vector<at::Tensor> means(const EvaluationResults& results, const Parts& parts);

}  // namespace stagecraft
