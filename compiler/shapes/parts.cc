#include "stagecraft/compiler/shapes/parts.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include "stagecraft/base/count_text.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/libtorch/memory_order.h"
#include "stagecraft/compiler/module/split_batch.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/compiler/shapes/shape_captures.h"

namespace stagecraft {
namespace {

enum class Likeness : std::uint8_t { Same, OtherShape, Unlike };

Likeness likeness(const Batch& batch, const std::vector<BatchSlice>& compiled, int microbatches) {
  if (batch.size() != compiled.size()) {
    return Likeness::Unlike;
  }
  bool same = true;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const auto& [tensor, whole, name] = batch[i];
    if (!why_unusable(tensor).empty() || tensor.requires_grad() ||
        tensor.scalar_type() != compiled[i].dtype || whole != compiled[i].replicated ||
        (!whole && tensor.dim() == 0)) {
      return Likeness::Unlike;
    }
    std::vector<std::int64_t> sizes = compiled[i].sizes;
    if (!whole) {
      sizes[0] *= microbatches;
    }
    same = same && tensor.sizes() == at::IntArrayRef(sizes) &&
           memory_order_of(whole ? tensor : tensor.narrow(0, 0, compiled[i].sizes[0])) ==
               compiled[i].order;
  }
  return same ? Likeness::Same : Likeness::OtherShape;
}

/// Returns the largest number of samples such that every tensor has a whole number of rows per
/// sample; 0 if none is split.
std::int64_t samples_of(const Batch& inputs, const Batch& labels) {
  std::int64_t samples = 0;
  for (const Batch* batch : {&inputs, &labels}) {
    for (const auto& [tensor, whole, name] : *batch) {
      samples = whole ? samples : std::gcd(samples, tensor.size(0));
    }
  }
  return samples;
}

struct SampleDivision {
  std::int64_t samples = 0;         ///< a tensor's rows are divided among so many
  std::vector<std::int64_t> parts;  ///< samples of each; 0 for one that repeats the part before
};

/// Returns the division into `count` equal parts, which the remaining ones repeat.
SampleDivision repeated_parts(std::int64_t count, std::int64_t microbatches) {
  SampleDivision division{.samples = count, .parts = {}};
  division.parts.assign(static_cast<std::size_t>(microbatches), 0);
  std::fill_n(division.parts.begin(), count, 1);
  return division;
}

/// Returns the number of parts of the compiled size that are the whole batch; 0 if there is none.
/// Requires: the batch is not Unlike.
std::int64_t compiled_parts(const CompiledProgram& compiled,
                            const Batch& inputs,
                            const Batch& labels) {
  std::set<std::int64_t> found;
  for (const auto& [batch, slices] :
       {std::pair(&inputs, &compiled.inputs), std::pair(&labels, &compiled.labels)}) {
    for (std::size_t i = 0; i < batch->size(); ++i) {
      if (!(*slices)[i].replicated) {
        const std::int64_t rows = (*batch)[i].tensor.size(0), of_part = (*slices)[i].sizes[0];
        found.insert(of_part > 0 && rows % of_part == 0 ? rows / of_part : 0);
      }
    }
  }
  return found.size() == 1 ? *found.begin() : 0;
}

/// Divides a batch. Keeps PT-1. Errors: CompileShape.
SampleDivision division_of(const Batch& inputs,
                           const Batch& labels,
                           std::int64_t microbatches,
                           bool evaluates) {
  std::int64_t samples = samples_of(inputs, labels);
  bool equal = true;
  for (const Batch* batch : {&inputs, &labels}) {
    for (const auto& [tensor, whole, name] : *batch) {
      const bool has_rows = whole || tensor.size(0) > 0;
      equal = equal && has_rows && (whole || tensor.size(0) % microbatches == 0);
      samples = has_rows ? samples : 0;
    }
  }
  if (equal) {
    return {.samples = microbatches,
            .parts = std::vector<std::int64_t>(static_cast<std::size_t>(microbatches), 1)};
  }
  if (evaluates && samples == 0) {
    throw Error(Errc::CompileShape,
                "the batch has no sample: pass at least one, or leave this batch out");
  }
  if (evaluates && samples < microbatches) {
    return repeated_parts(samples, microbatches);
  }
  if (samples < microbatches) {
    throw Error(Errc::CompileShape,
                fmt::format("the batch has {} for {}, and each needs one: "
                            "pass at least {}, or leave this batch out",
                            count_text(samples, "sample"),
                            count_text(microbatches, "microbatch"),
                            microbatches));
  }
  SampleDivision division{.samples = samples, .parts = {}};
  for (std::int64_t m = 0; m < microbatches; ++m) {
    division.parts.push_back(samples / microbatches + (m < samples % microbatches ? 1 : 0));
  }
  return division;
}

/// Returns 1 if nothing is split, so that every batch counts the same.
std::int64_t first_of(std::int64_t samples) {
  return std::max<std::int64_t>(samples, 1);
}

/// Returns part m of every tensor.
std::vector<std::vector<at::Tensor>> divided(const Batch& batch,
                                             const SampleDivision& division,
                                             HostMemory memory) {
  const at::NoGradGuard no_grad;
  const c10::InferenceMode no_inference(false);  // tensors made in inference mode could not be
                                                 // differentiated through
  std::vector<std::vector<at::Tensor>> parts(division.parts.size());
  for (const auto& [tensor, whole, name] : batch) {
    const auto copy = [memory](const at::Tensor& t) {
      return copied_in_order(t, memory_order_of(t), memory);
    };
    const at::Tensor shared = whole ? copy(tensor) : at::Tensor();
    const std::int64_t rows = whole ? 0 : tensor.size(0) / division.samples;
    std::int64_t begin = 0;
    for (std::size_t m = 0; m < parts.size(); ++m) {
      const std::int64_t count = division.parts[m] * rows;
      parts[m].push_back(whole        ? shared
                         : count == 0 ? parts[m - 1].back()
                                      : copy(tensor.narrow(0, begin, count)));
      begin += count;
    }
  }
  return parts;
}

/// Errors: UsageArgument for a name at another position than when compiled.
void check_names(const Batch& inputs, const std::vector<std::string>& compiled) {
  for (std::size_t i = 0; i < inputs.size() && i < compiled.size(); ++i) {
    if (!inputs[i].name.empty() && inputs[i].name != compiled[i]) {
      throw Error(Errc::UsageArgument,
                  fmt::format("input tensor {} is named \"{}\" and was compiled as \"{}\"; pass "
                              "the inputs in the order of CompileOptions::inputs",
                              i,
                              inputs[i].name,
                              compiled[i]));
    }
  }
}

}  // namespace

FirstPart first_part(const CompiledProgram& program, const Batch& inputs, const Batch& labels) {
  check_names(inputs, program.input_names);
  const auto require_alike =
      [&](const Batch& batch, const std::vector<BatchSlice>& compiled, const char* what) {
        if (likeness(batch, compiled, program.microbatches) == Likeness::Unlike) {
          (void)split_batch(batch, compiled, program.microbatches, what);  // throws the reason
        }
      };
  require_alike(inputs, program.inputs, "input");
  if (!labels.empty()) {
    require_alike(labels, program.labels, "label");
  }
  const SampleDivision division =
      division_of(inputs, labels, program.microbatches, /*evaluates=*/true);
  FirstPart first{.inputs = divided(inputs, division, HostMemory::Pageable).front(),
                  .labels = divided(labels, division, HostMemory::Pageable).front(),
                  .input_slices = {},
                  .label_slices = {}};
  first.input_slices = slices_of_part(first.inputs, inputs);
  first.label_slices = slices_of_part(first.labels, labels);
  return first;
}

Parts parts_as_compiled(const Program& program) {
  const CompiledProgram& compiled = program.compiled();
  const auto microbatches = static_cast<std::size_t>(compiled.microbatches);
  std::int64_t samples = 0;
  for (const std::vector<BatchSlice>* side : {&compiled.inputs, &compiled.labels}) {
    for (const BatchSlice& slice : *side) {
      samples = slice.replicated
                    ? samples
                    : std::gcd(samples, slice.sizes[0] * std::int64_t{compiled.microbatches});
    }
  }
  Parts parts;
  parts.inputs.resize(microbatches);
  parts.labels.resize(microbatches);
  parts.samples = first_of(samples);
  parts.first_samples = first_of(parts.samples / compiled.microbatches);
  return parts;
}

Parts parts_of(const Program& program,
               const Batch& inputs,
               const Batch& labels,
               HostMemory memory) {
  const CompiledProgram& compiled = program.compiled();
  const int microbatches = compiled.microbatches;
  check_names(inputs, compiled.input_names);
  const Likeness of_inputs = likeness(inputs, compiled.inputs, microbatches);
  const Likeness of_labels = likeness(labels, compiled.labels, microbatches);
  const bool same = of_inputs == Likeness::Same && of_labels == Likeness::Same;
  const bool unlike = of_inputs == Likeness::Unlike || of_labels == Likeness::Unlike;
  if (same || unlike || program.shape_captures() == nullptr) {
    // split_batch refuses a batch that does not fit
    Parts equal{.inputs = split_batch(inputs, compiled.inputs, microbatches, "input", memory),
                .labels = split_batch(labels, compiled.labels, microbatches, "label", memory),
                .shapes = {},
                .weights = {}};
    equal.samples = first_of(samples_of(inputs, labels));
    equal.first_samples = first_of(equal.samples / microbatches);
    return equal;
  }
  const bool evaluates = compiled.evaluates != nullptr;
  const std::int64_t whole =
      evaluates && compiled.graph.loss != kNoValue ? compiled_parts(compiled, inputs, labels) : 0;
  const SampleDivision division = whole > 0 && whole < microbatches
                                      ? repeated_parts(whole, microbatches)
                                      : division_of(inputs, labels, microbatches, evaluates);
  Parts parts{.inputs = divided(inputs, division, memory),
              .labels = divided(labels, division, memory),
              .shapes = {},
              .weights = {}};
  parts.samples = first_of(samples_of(inputs, labels));
  parts.first_samples = first_of(parts.samples / division.samples * division.parts.front());
  for (std::size_t m = 0; m < division.parts.size(); ++m) {
    parts.shapes.push_back(program.shape_captures()->of(slices_of_part(parts.inputs[m], inputs),
                                                        slices_of_part(parts.labels[m], labels),
                                                        parts.inputs[m],
                                                        parts.labels[m]));
    parts.weights.push_back(static_cast<double>(division.parts[m]) /
                            static_cast<double>(division.parts.front()));
  }
  if (std::ranges::all_of(parts.weights, [](double weight) { return weight == 1.0; })) {
    parts.weights.clear();
  }
  return parts;
}

}  // namespace stagecraft
