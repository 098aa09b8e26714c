#include "stagecraft/actors/trainer/steps/evaluation_results.h"

#include <algorithm>
#include <map>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/actors/trainer/steps/evaluation.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/libtorch/memory_order.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/compiler/shapes/evaluations.h"

namespace stagecraft {
namespace {

/// Returns the memory order in which the value of a microbatch was sent: that of its shape.
MemoryOrder order_of(const KnownPrograms::Sent& evaluation,
                     const Layout& layout,
                     const Parts& parts,
                     const PlanResult& result) {
  const CompiledProgram& compiled = evaluation.program.compiled();
  const auto& shape = parts.shapes.empty() ? nullptr : parts.shapes[result.microbatch.index()];
  if (shape == nullptr) {
    return compiled.graph.at(result.value).order;
  }
  const StageId stage = layout.model_stage(evaluation.plan->edges[result.edge.index()].from);
  const auto& outputs = compiled.partition.stages[stage.index()].outputs;
  const auto place = std::ranges::find(outputs, result.value, &StageOutput::value);
  const StageProgram& of_shape = shape->stages[stage.index()];
  return of_shape.at(of_shape.outputs[static_cast<std::size_t>(place - outputs.begin())].value)
      .order;
}

struct Joining {
  const char* part;
  const char* advice;
};

constexpr Joining kOfMicrobatches{
    .part = "microbatch",
    .advice =
        "pass a batch whose samples divide by the number of microbatches, or batches of one "
        "shape"};
constexpr Joining kOfBatches{
    .part = "batch",
    .advice =
        "give predict() a function that takes the outputs of each batch, or batches of one "
        "shape"};

/// Errors: CompileShape if the parts differ in another dimension than that of their rows.
void require_joinable(const std::vector<at::Tensor>& rows,
                      std::int64_t dim,
                      std::size_t output,
                      const Joining& joining) {
  const auto without_rows = [dim](const at::Tensor& part) {
    std::vector<std::int64_t> sizes = part.sizes().vec();
    sizes.erase(sizes.begin() + dim);
    return sizes;
  };
  for (const at::Tensor& part : rows) {
    if (part.dim() != rows.front().dim() || without_rows(part) != without_rows(rows.front())) {
      throw Error(Errc::CompileShape,
                  fmt::format("output {} is of shape [{}] for one {} and [{}] for another, which "
                              "cannot be concatenated: {}",
                              output,
                              fmt::join(rows.front().sizes(), ", "),
                              joining.part,
                              fmt::join(part.sizes(), ", "),
                              joining.advice));
    }
  }
}

}  // namespace

EvaluationResults take_results(const KnownPrograms::Sent& evaluation,
                               const Layout& layout,
                               const Parts& parts,
                               const std::vector<Future<at::Tensor>>& arrived,
                               const ResultWait& wait) {
  std::map<std::pair<ValueId, Microbatch>, at::Tensor> values;
  for (std::size_t i = 0; i < arrived.size(); ++i) {
    const PlanResult& result = evaluation.plan->results[i];
    if (!wait(result.from, arrived[i])) {
      throw Error(Errc::ClusterTimeout,
                  fmt::format("a result of microbatch {} was sent by rank {} and has not arrived",
                              result.microbatch.value,
                              result.from.value))
          .with({.rank = result.from});
    }
    values[{result.value, result.microbatch}] =
        from_memory_order(arrived[i].get(), order_of(evaluation, layout, parts, result));
  }
  EvaluationResults results;
  for (const ValueId value : results_of(evaluation.program.compiled().graph)) {
    std::vector<at::Tensor>& of_value = results.emplace_back();
    for (int m = 0; m < evaluation.plan->tables.microbatches; ++m) {
      of_value.push_back(values.at({value, Microbatch(m)}));
    }
  }
  return results;
}

std::vector<at::Tensor> joined(const EvaluationResults& results,
                               const Parts& parts,
                               const std::vector<std::int64_t>& row_dimensions) {
  std::vector<at::Tensor> all;
  for (const std::vector<at::Tensor>& of_value : results) {
    std::vector<at::Tensor> rows;
    for (std::size_t m = 0; m < of_value.size(); ++m) {
      if (parts.weight(m) > 0.0) {
        rows.push_back(of_value[m].dim() == 0 ? of_value[m].unsqueeze(0) : of_value[m]);
      }
    }
    const std::int64_t dim = row_dimensions[all.size()];
    require_joinable(rows, dim, all.size(), kOfMicrobatches);
    all.push_back(at::cat(rows, dim));
  }
  return all;
}

std::vector<at::Tensor> concatenated(const std::vector<std::vector<at::Tensor>>& batches,
                                     const std::vector<std::int64_t>& row_dimensions) {
  std::vector<at::Tensor> all;
  for (std::size_t i = 0; i < batches.front().size(); ++i) {
    std::vector<at::Tensor> rows;
    for (const std::vector<at::Tensor>& batch : batches) {
      rows.push_back(batch[i]);
    }
    require_joinable(rows, row_dimensions[i], i, kOfBatches);
    all.push_back(at::cat(rows, row_dimensions[i]));
  }
  return all;
}

std::vector<at::Tensor> means(const EvaluationResults& results, const Parts& parts) {
  std::vector<at::Tensor> all;
  for (const std::vector<at::Tensor>& of_value : results) {
    at::Tensor sum;
    double weight = 0.0;
    for (std::size_t m = 0; m < of_value.size(); ++m) {
      if (parts.weight(m) > 0.0) {
        const at::Tensor part = of_value[m].to(at::kDouble) * parts.weight(m);
        sum = sum.defined() ? sum + part : part;
        weight += parts.weight(m);
      }
    }
    all.push_back(sum / weight);
  }
  return all;
}

double Evaluation::operator[](std::string_view metric) const {
  for (const auto& [name, value] : metrics) {
    if (name == metric && value.numel() == 1) {
      return value.item<double>();
    }
  }
  throw Error(
      Errc::UsageArgument,
      fmt::format("this evaluation has no metric \"{}\" that is one number: pass the metric "
                  "to evaluate()",
                  metric));
}

}  // namespace stagecraft
