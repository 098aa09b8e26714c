#include "stagecraft/compiler/fuse/fuse_plan.h"

#include <algorithm>
#include <set>
#include <utility>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <c10/util/accumulate.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include "stagecraft/base/check.h"
#include "stagecraft/compiler/memory_meter.h"
#include "stagecraft/compiler/same_bits.h"

namespace stagecraft {
namespace {

using Tensors = std::vector<at::Tensor>;
using torch::autograd::Edge;

constexpr std::uint64_t kExampleSeed = 20260101;
constexpr std::int64_t kSmall = 8;  // times smaller than the domain: kept rather than made again
constexpr TracedValue kUndefined = -1;

std::size_t at(TracedValue value) {
  return static_cast<std::size_t>(value);
}

/// Numbers of all signs, in a tensor that looks like this.
at::Tensor example(const TensorFacts& facts, at::Generator& generator) {
  std::int64_t last = 0;
  bool empty = false;
  for (std::size_t d = 0; d < facts.sizes.size(); ++d) {
    empty = empty || facts.sizes[d] == 0;
    last += (facts.sizes[d] - 1) * facts.strides[d];
  }
  at::Tensor memory = at::empty({empty ? 0 : last + 1}, at::TensorOptions(facts.dtype));
  if (at::isFloatingType(facts.dtype)) {
    memory.normal_(0.0, 1.0, generator);
  } else if (facts.dtype == at::kBool) {
    memory.bernoulli_(0.5, generator);
  } else {
    memory.zero_();
  }
  return memory.as_strided(facts.sizes, facts.strides);
}

/// And strides, by which operators choose their kernels.
bool same_tensors(const Tensors& a, const Tensors& b) {
  return std::ranges::equal(a, b, [](const at::Tensor& x, const at::Tensor& y) {
    return same_bits(x, y) && (!x.defined() || x.strides() == y.strides());
  });
}

/// While it lives, what is allocated is in nobody's bill: examples are gone when the plan is made.
class Unmetered {
  c10::DebugInfoGuard guard_{c10::DebugInfoKind::PROFILER_STATE, std::make_shared<MemoryMeter>()};
};

}  // namespace

/// The region operator by operator on examples, recorded.
struct FusePlan::Examples {
  Tracer tracer;
  Tensors inputs, outputs;
  std::size_t forward_values = 0;
  // Of a backward, where one was run.
  Tensors output_gradients, input_gradients;

  Examples(const PlainRegion& plain, const RegionCase& made_for)
      : generator_(at::make_generator<at::CPUGeneratorImpl>(kExampleSeed)) {
    for (const RegionCase::Input& input : made_for.inputs) {
      inputs.push_back(example(input.facts, generator_).requires_grad_(input.requires_grad));
      tracer.add(inputs.back());
    }
    tracer.record([&] {
      const at::AutoGradMode mode(made_for.gradients);
      outputs = plain(inputs);
    });
    forward_values = tracer.trace().values.size();
  }

  void run_backward(const GradientCase& like) {
    std::vector<Edge> roots, wanted;
    Tensors root_gradients;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      output_gradients.push_back(like.gradients[i] ? example(*like.gradients[i], generator_)
                                                   : at::Tensor());
      if (like.gradients[i]) {
        tracer.add(output_gradients.back());
        roots.push_back(torch::autograd::impl::gradient_edge(outputs[i]));
        root_gradients.push_back(output_gradients.back());
      }
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (like.needed[i]) {
        wanted.push_back(torch::autograd::impl::gradient_edge(inputs[i]));
      }
    }
    input_gradients.resize(inputs.size());
    if (roots.empty() || wanted.empty()) {
      return;
    }
    Tensors made;
    tracer.record([&] {
      made = torch::autograd::Engine::get_default_engine().execute(roots,
                                                                   root_gradients,
                                                                   /*keep_graph=*/false,
                                                                   /*create_graph=*/false,
                                                                   /*accumulate_grad=*/false,
                                                                   wanted);
    });
    for (std::size_t i = 0, next = 0; i < inputs.size(); ++i) {
      if (like.needed[i]) {
        input_gradients[i] = made[next++];
      }
    }
  }

  [[nodiscard]] const Trace& trace() const { return tracer.trace(); }

 private:
  at::Generator generator_;
};

FusePlan::FusePlan(PlainRegion plain, RegionCase made_for)
    : plain_(std::move(plain)), case_(std::move(made_for)) {
  const Unmetered examples_are_nobodys;
  Examples examples(plain_, case_);
  for (const at::Tensor& output : examples.outputs) {
    const std::optional<TracedValue> value = examples.tracer.find(output);
    outputs_.push_back(value.value_or(kUndefined));
    require_grad_.push_back(output.requires_grad());
  }
  values_ = examples.forward_values;
  domain_ = domain_of(examples.trace());
  const bool differentiable = std::ranges::any_of(require_grad_, std::identity());
  GradientCase whole;
  if (differentiable) {
    for (const at::Tensor& output : examples.outputs) {
      whole.gradients.push_back(output.requires_grad() ? std::optional(facts_of(output))
                                                       : std::nullopt);
    }
    for (const RegionCase::Input& input : case_.inputs) {
      whole.needed.push_back(input.requires_grad);
    }
    examples.run_backward(whole);
  }
  fault_ = examples.tracer.fault();
  if (fault_.empty() && std::ranges::find(outputs_, kUndefined) != outputs_.end()) {
    fault_ = "it returns a tensor that no operator made";
  }
  if (fault_.empty() && !domain_) {
    fault_ = "nothing in it has rows";
  }
  if (fault_.empty()) {
    make_forward(examples);
  }
  if (fault_.empty() && differentiable) {
    backwards_.emplace(whole, backward_of(examples));
  }
}

void FusePlan::make_forward(const Examples& examples) {
  choose_saved(examples);
  std::vector<TracedValue> wanted = outputs_;
  wanted.insert(wanted.end(), saved_.begin(), saved_.end());
  forward_ = Passes(examples.trace(), domain_, inputs(), wanted);
  if (const auto alone = forward_.alone(); !alone.empty()) {
    fault_ = fmt::format("{} is not computed by blocks here", alone.front());
  } else if (!same_tensors(forward(examples.inputs).outputs, examples.outputs)) {
    fault_ = "it would have other bits";
  }
}

std::vector<TracedValue> FusePlan::inputs() const {
  std::vector<TracedValue> all;
  for (std::size_t i = 0; i < case_.inputs.size(); ++i) {
    all.push_back(static_cast<TracedValue>(i));  // the first that examples add
  }
  return all;
}

/// Keeps FP-2.
void FusePlan::choose_saved(const Examples& examples) {
  const Trace& trace = examples.trace();
  std::vector<const TracedCall*> maker(trace.values.size(), nullptr);
  for (const TracedCall& call : trace.calls) {
    for (const TracedValue result : call.results) {
      maker[at(result)] = &call;
    }
  }
  const std::int64_t elements = c10::multiply_integers(domain_->rows) * domain_->columns;
  std::set<TracedValue> saved;
  const auto is_small = [&](TracedValue value) {
    return c10::multiply_integers(trace.values[at(value)].sizes) * kSmall <= elements;
  };
  const auto is_there = [&](TracedValue value) {  // anyway, or at little cost
    return at(value) < case_.inputs.size() || is_small(value) || saved.contains(value) ||
           std::ranges::find(outputs_, value) != outputs_.end();
  };
  // Of what a value is made again; false where that is not cheap, or not done by blocks.
  const auto leaves_of = [&](TracedValue value, std::set<TracedValue>& leaves) {
    std::vector<TracedValue> open{value};
    while (!open.empty()) {
      const TracedCall* const call = maker[at(open.back())];
      open.pop_back();
      if (call == nullptr || !is_cheap(*call) || !fits(trace, *call, *domain_)) {
        return false;
      }
      for (const TracedValue read : reads_of(*call)) {
        if (is_there(read)) {
          leaves.insert(read);
        } else {
          open.push_back(read);
        }
      }
    }
    return true;
  };
  for (const TracedValue value : forward_values_read(examples)) {
    std::set<TracedValue> leaves;
    const bool again = !is_there(value) && leaves_of(value, leaves);
    const auto large = std::ranges::count_if(
        leaves, [&](TracedValue v) { return !saved.contains(v) && !is_small(v); });
    if (again && large <= 1) {
      saved.insert(leaves.begin(), leaves.end());
    } else {
      saved.insert(value);
    }
  }
  saved_.assign(saved.begin(), saved.end());
}

/// By the backward that was run.
std::set<TracedValue> FusePlan::forward_values_read(const Examples& examples) {
  const Trace& trace = examples.trace();
  std::set<TracedValue> read, open;
  for (const at::Tensor& gradient : examples.input_gradients) {
    if (gradient.defined()) {
      open.insert(examples.tracer.find(gradient).value());
    }
  }
  for (auto call = trace.calls.rbegin(); call != trace.calls.rend(); ++call) {
    if (std::ranges::any_of(call->results, [&](TracedValue v) { return open.contains(v); })) {
      for (const TracedValue value : reads_of(*call)) {
        (at(value) < examples.forward_values ? read : open).insert(value);
      }
    }
  }
  return read;
}

FusePlan::Forward FusePlan::forward(const Tensors& given) const {
  const at::NoGradGuard no_grad;
  const at::AutoDispatchBelowADInplaceOrView below;
  Tensors values(values_);
  std::ranges::copy(given, values.begin());
  forward_.run(values);
  Forward made;
  for (const TracedValue output : outputs_) {
    made.outputs.push_back(values[at(output)]);
  }
  for (const TracedValue value : saved_) {
    made.saved.push_back(values[at(value)]);
  }
  return made;
}

// ---- backward -----------------------------------------------------------------------------------

/// In passes where that has the bits of the examples, else operator by operator as recorded.
FusePlan::Backward FusePlan::backward_of(const Examples& examples) const {
  Backward made{
      .gradients = {}, .results = {}, .values = examples.trace().values.size(), .passes = {}};
  std::vector<TracedValue> available = saved_, wanted;
  for (const at::Tensor& gradient : examples.output_gradients) {
    made.gradients.push_back(gradient.defined() ? examples.tracer.find(gradient).value()
                                                : kUndefined);
    if (gradient.defined()) {
      available.push_back(made.gradients.back());
    }
  }
  for (const at::Tensor& gradient : examples.input_gradients) {
    made.results.push_back(gradient.defined() ? examples.tracer.find(gradient).value()
                                              : kUndefined);
    if (gradient.defined()) {
      wanted.push_back(made.results.back());
    }
  }
  const Tensors saved = forward(examples.inputs).saved;
  for (const std::optional<BlockDomain>& domain : {domain_, std::optional<BlockDomain>()}) {
    made.passes = Passes(examples.trace(), domain, available, wanted);
    SC_CHECK(made.passes.is_complete(), "what a fused backward reads has been kept");
    if (same_tensors(run(made, saved, examples.output_gradients), examples.input_gradients)) {
      break;
    }
  }
  return made;
}

Tensors FusePlan::run(const Backward& backward,
                      const Tensors& saved,
                      const Tensors& gradients) const {
  const at::NoGradGuard no_grad;
  const at::AutoDispatchBelowADInplaceOrView below;
  Tensors values(backward.values);
  for (std::size_t i = 0; i < saved_.size(); ++i) {
    values[at(saved_[i])] = saved[i];
  }
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (gradients[i].defined()) {
      values[at(backward.gradients[i])] = gradients[i];
    }
  }
  backward.passes.run(values);
  Tensors results;
  for (const TracedValue result : backward.results) {
    results.push_back(result == kUndefined ? at::Tensor() : values[at(result)]);
  }
  return results;
}

const FusePlan::Backward& FusePlan::backward_for(const GradientCase& like) const {
  const std::lock_guard lock(mutex_);
  const auto known = backwards_.find(like);
  if (known != backwards_.end()) {
    return known->second;
  }
  const Unmetered examples_are_nobodys;
  Examples examples(plain_, case_);
  examples.run_backward(like);
  SC_CHECK(examples.tracer.fault().empty(), "a backward that was recorded once can be again");
  return backwards_.emplace(like, backward_of(examples)).first->second;
}

Tensors FusePlan::backward(const Tensors& saved,
                           const Tensors& output_gradients,
                           const std::vector<bool>& needed) const {
  GradientCase like{.gradients = {}, .needed = needed};
  for (const at::Tensor& gradient : output_gradients) {
    like.gradients.push_back(gradient.defined() ? std::optional(facts_of(gradient)) : std::nullopt);
  }
  return run(backward_for(like), saved, output_gradients);
}

PassCounts FusePlan::forward_counts() const {
  return forward_.counts();
}

PassCounts FusePlan::backward_counts() const {
  const std::lock_guard lock(mutex_);
  return backwards_.empty() ? PassCounts{} : backwards_.begin()->second.passes.counts();
}

}  // namespace stagecraft
