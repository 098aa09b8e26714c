/// What the ranks send of an evaluation, put together: outputs of the model, or metrics, by
/// microbatch.
///
/// Used by the trainer, on its caller's thread, when the step is over.
#pragma once

#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/told_programs.h"
#include "stagecraft/compiler/parts.h"
#include "stagecraft/futures/future.h"

namespace stagecraft {

/// By result, then microbatch.
using EvaluationResults = std::vector<std::vector<at::Tensor>>;

/// Waits for a tensor that a rank sends; false: it has not come in time. Errors: the rank's loss.
using ResultWait = std::function<bool(Rank from, const Future<at::Tensor>& result)>;

/// `arrived`: per result of the plan. Waits for those on their way.
/// Errors: ClusterTimeout where one does not come in time; those of `wait`.
[[nodiscard]] EvaluationResults take_results(const ToldPrograms::Told& evaluation,
                                             const Layout& layout,
                                             const Parts& parts,
                                             const std::vector<Future<at::Tensor>>& arrived,
                                             const ResultWait& wait);

/// Per result what all microbatches made, one after the other in the dimension of their rows
/// (output_rows.h); of a number, one element each.
/// Errors: CompileShape for parts that differ otherwise.
[[nodiscard]] std::vector<at::Tensor> joined(const EvaluationResults& results,
                                             const Parts& parts,
                                             const std::vector<std::int64_t>& row_dimensions);

/// Per result the mean over the samples, in double.
[[nodiscard]] std::vector<at::Tensor> means(const EvaluationResults& results, const Parts& parts);

}  // namespace stagecraft
