#include "stagecraft/compiler/interpreter.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <variant>

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include "stagecraft/base/check.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/autocast_guard.h"
#include "stagecraft/compiler/fuse/fused_region.h"
#include "stagecraft/compiler/fuse/regions.h"
#include "stagecraft/compiler/operator_call.h"
#include "stagecraft/compiler/tensor_hooks.h"

namespace stagecraft {
namespace {

constexpr int kAbsent = OperatorCall::kAbsent;

/// Gives values places, in the order in which they are first asked for.
class Places {
 public:
  int operator()(ValueId id) {
    if (id == kNoValue) {
      return kAbsent;
    }
    const auto [place, is_new] = places_.try_emplace(id, count_);
    count_ += is_new ? 1 : 0;
    return place->second;
  }
  /// From now on it lies elsewhere.
  int move(ValueId id) { return places_[id] = count_++; }
  [[nodiscard]] std::size_t count() const { return static_cast<std::size_t>(count_); }

 private:
  std::unordered_map<ValueId, int> places_;
  int count_ = 0;
};

/// The operators of a region one by one, in places of their own.
struct PlainCalls {
  std::vector<OperatorCall> calls;
  std::size_t places = 0;
  std::vector<int> inputs, outputs, handed_on;
  std::string stage_name;

  PlainCalls(const StageProgram& stage, const Chunk& chunk, const Region& region)
      : stage_name(stage.name) {
    Places place_of;
    for (const ValueId input : region.inputs) {
      inputs.push_back(place_of(input));
    }
    for (const std::size_t node : region.nodes) {
      calls.emplace_back(stage, chunk.nodes[node], std::ref(place_of));
    }
    for (const ValueId output : region.outputs) {
      outputs.push_back(place_of(output));
    }
    for (const ValueId value : region.handed_on) {
      handed_on.push_back(place_of(value));
    }
    places = place_of.count();
  }

  [[nodiscard]] std::vector<at::Tensor> run(const std::vector<at::Tensor>& given) const {
    std::vector<at::Tensor> values(places), made;
    for (std::size_t i = 0; i < given.size(); ++i) {
      values[static_cast<std::size_t>(inputs[i])] = given[i];
    }
    std::optional<AutocastGuard> autocast;
    torch::jit::Stack stack;
    for (const OperatorCall& call : calls) {
      if (call.autocast.enabled && !autocast) {
        autocast.emplace();
      }
      if (autocast) {
        AutocastGuard::set(call.autocast);
      }
      call.run(values, stack, {}, stage_name);
    }
    for (const int output : outputs) {
      made.push_back(values[static_cast<std::size_t>(output)]);
    }
    // Last, so that gradients of later readers arrive first (RG-2).
    for (const int value : handed_on) {
      made.push_back(values[static_cast<std::size_t>(value)].alias());
    }
    return made;
  }
};

/// A region as a step of the chunk.
struct RegionCall {
  std::string operators;
  FusedRegion region;
  std::vector<int> inputs, results;

  void run(std::vector<at::Tensor>& values) const {
    std::vector<at::Tensor> given;
    given.reserve(inputs.size());
    for (const int input : inputs) {
      given.push_back(values[static_cast<std::size_t>(input)]);
    }
    std::vector<at::Tensor> made = region.run(given);
    for (std::size_t i = 0; i < made.size(); ++i) {
      values[static_cast<std::size_t>(results[i])] = std::move(made[i]);
    }
  }

  [[nodiscard]] std::vector<int> places() const {
    std::vector<int> all = inputs;
    all.insert(all.end(), results.begin(), results.end());
    return all;
  }
};

struct ChunkStep {
  template <class Call>
  ChunkStep(Call&& made, std::vector<std::size_t> of)
      : call(std::forward<Call>(made)), nodes(std::move(of)) {}

  std::variant<std::unique_ptr<const OperatorCall>, std::unique_ptr<const RegionCall>> call;
  std::vector<std::size_t> nodes;
  std::vector<int> last_uses;  ///< places nobody reads after this step
};

}  // namespace

struct ChunkInterpreter::Impl {
  /// An operand that is part of the stage's state, by its position there.
  struct Bound {
    std::size_t position = 0;
    int local = kAbsent;
    std::shared_ptr<const TensorHooks> hooks;  ///< null where it has none
  };
  struct Input {
    int local = kAbsent;
    bool written = false;  ///< in place: the run gets a copy
    ValueId value;
    Value expected;
  };

  std::string stage_name;
  Places place_of;
  std::vector<ChunkStep> steps;
  std::vector<Input> inputs;
  std::vector<Bound> parameters, buffers;
  std::vector<std::pair<int, at::Tensor>> constants;
  std::vector<int> output_locals;
  int loss_local = kAbsent;
  bool any_autocast = false;
  std::vector<FuseReport::Left> left_alone;

  Impl(const StageProgram& stage, const Chunk& chunk) : stage_name(stage.name) {
    bind_operands(stage, chunk);
    bind_calls(stage, chunk);
    for (const ValueId output : chunk.outputs) {
      output_locals.push_back(place_of(output));
    }
    if (makes(chunk, stage.loss)) {
      loss_local = place_of(stage.loss);
    }
    find_last_uses();
  }

  static bool makes(const Chunk& chunk, ValueId value) {
    return value != kNoValue && std::ranges::any_of(chunk.nodes, [&](const Node& node) {
             return std::ranges::find(node.results, value) != node.results.end();
           });
  }

  void bind_operands(const StageProgram& stage, const Chunk& chunk) {
    std::set<int> written_sets;
    std::set<ValueId> used(chunk.outputs.begin(), chunk.outputs.end());
    for (const Node& node : chunk.nodes) {
      for (const ValueId id : node.writes) {
        written_sets.insert(stage.at(id).alias_set);
      }
      const std::vector<ValueId> reads = reads_of(node);
      used.insert(reads.begin(), reads.end());
    }
    for (const ValueId id : chunk.inputs) {
      const Value& value = stage.at(id);
      inputs.push_back({.local = place_of(id),
                        .written = written_sets.contains(value.alias_set),
                        .value = id,
                        .expected = value});
    }
    const auto bind_state = [&](const auto& all, std::vector<Bound>& bound) {
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (used.contains(all[i].value)) {
          bound.push_back({i, place_of(all[i].value), hooks_on(stage, all[i].value)});
        }
      }
    };
    bind_state(stage.parameters, parameters);
    bind_state(stage.buffers, buffers);
    for (const StageConstant& constant : stage.constants) {
      if (used.contains(constant.value)) {
        constants.emplace_back(place_of(constant.value), constant.tensor);
      }
    }
  }

  void bind_calls(const StageProgram& stage, const Chunk& chunk) {
    const Regions regions = stage.fuse ? regions_of(stage, chunk) : Regions{};
    for (const LeftAlone& left : regions.left) {
      left_alone.push_back({operator_name(chunk.nodes[left.node]), left.why});
    }
    std::set<std::size_t> in_region;
    for (const Region& region : regions.all) {
      in_region.insert(region.nodes.begin(), region.nodes.end());
    }
    auto region = regions.all.begin();
    for (std::size_t n = 0; n < chunk.nodes.size(); ++n) {
      if (!in_region.contains(n)) {
        steps.emplace_back(
            std::make_unique<const OperatorCall>(stage, chunk.nodes[n], std::ref(place_of)),
            std::vector{n});
        any_autocast = any_autocast || chunk.nodes[n].autocast.enabled;
      } else if (n == region->nodes.back()) {
        steps.emplace_back(std::make_unique<const RegionCall>(call_of(stage, chunk, *region)),
                           region->nodes);
        ++region;
      }
    }
  }

  RegionCall call_of(const StageProgram& stage, const Chunk& chunk, const Region& region) {
    const auto plain = std::make_shared<const PlainCalls>(stage, chunk, region);
    std::string operators = names_of(chunk, region);
    RegionCall call{.operators = operators,
                    .region = FusedRegion(std::move(operators),
                                          signature_of(chunk, region),
                                          [plain](const std::vector<at::Tensor>& given) {
                                            return plain->run(given);
                                          }),
                    .inputs = {},
                    .results = {}};
    for (const ValueId input : region.inputs) {
      call.inputs.push_back(place_of(input));
    }
    for (const ValueId output : region.outputs) {
      call.results.push_back(place_of(output));
    }
    for (const ValueId value : region.handed_on) {
      call.results.push_back(place_of.move(value));
    }
    return call;
  }

  void find_last_uses() {
    std::set<int> needed(output_locals.begin(), output_locals.end());
    needed.insert(loss_local);
    for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
      const std::vector<int> touched =
          std::visit([](const auto& call) { return call->places(); }, step->call);
      for (const int place : touched) {
        if (needed.insert(place).second) {
          step->last_uses.push_back(place);
        }
      }
    }
  }

  void check_input(const at::Tensor& tensor, const Input& input) const {
    const Value& expected = input.expected;
    if (tensor.sizes() != at::IntArrayRef(expected.sizes) ||
        tensor.scalar_type() != expected.dtype) {
      throw Error(Errc::CompileShape,
                  fmt::format("stage \"{}\" was captured with {} of shape {} for {}, but gets {} "
                              "of shape {}; compile again for another shape or dtype",
                              stage_name,
                              at::toString(expected.dtype),
                              c10::str(at::IntArrayRef(expected.sizes)),
                              value_name(expected, input.value),
                              at::toString(tensor.scalar_type()),
                              c10::str(tensor.sizes())));
    }
  }

  std::vector<at::Tensor> bind(const std::vector<at::Tensor>& given,
                               const StageState& state) const {
    std::vector<at::Tensor> values(place_of.count());
    const auto value = [&](int local) -> at::Tensor& {
      return values[static_cast<std::size_t>(local)];
    };
    SC_CHECK(given.size() == inputs.size(),
             "stage " + stage_name + " gets another number of inputs");
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      check_input(given[i], inputs[i]);
      value(inputs[i].local) = inputs[i].written ? given[i].clone() : given[i];
    }
    for (const Bound& parameter : parameters) {
      const at::Tensor& tensor = state.parameters[parameter.position];
      value(parameter.local) = parameter.hooks ? with_hooks(tensor, parameter.hooks) : tensor;
    }
    for (const Bound& buffer : buffers) {
      value(buffer.local) = state.buffers[buffer.position];
    }
    for (const auto& [local, tensor] : constants) {
      value(local) = tensor;
    }
    return values;
  }
};

ChunkInterpreter::ChunkInterpreter(const StageProgram& stage, const Chunk& chunk)
    : impl_(std::make_unique<Impl>(stage, chunk)) {}
ChunkInterpreter::~ChunkInterpreter() = default;
ChunkInterpreter::ChunkInterpreter(ChunkInterpreter&&) noexcept = default;
ChunkInterpreter& ChunkInterpreter::operator=(ChunkInterpreter&&) noexcept = default;

FuseReport ChunkInterpreter::fuse_report() const {
  FuseReport report{.regions = {}, .left = impl_->left_alone};
  for (const ChunkStep& step : impl_->steps) {
    if (const auto* call = std::get_if<std::unique_ptr<const RegionCall>>(&step.call)) {
      const FusePlan* const plan = (*call)->region.plan();
      report.regions.push_back(
          plan == nullptr ? FuseReport::Region{(*call)->operators, {}, {}, "it has not run"}
                          : FuseReport::Region{(*call)->operators,
                                               plan->forward_counts(),
                                               plan->backward_counts(),
                                               plan->fault()});
    }
  }
  return report;
}

ChunkResult ChunkInterpreter::run(const std::vector<at::Tensor>& inputs,
                                  const StageState& state,
                                  const RandomKey& key,
                                  ChunkWatch* watch) const {
  const bool gradients = at::GradMode::is_enabled();
  std::vector<at::Tensor> values = impl_->bind(inputs, state);
  std::optional<AutocastGuard> autocast;
  if (impl_->any_autocast) {
    autocast.emplace();
  }
  torch::jit::Stack stack;
  for (const ChunkStep& step : impl_->steps) {
    if (watch != nullptr) {
      watch->before(step.nodes);
    }
    if (const auto* found = std::get_if<std::unique_ptr<const OperatorCall>>(&step.call)) {
      const OperatorCall& call = **found;
      const at::AutoGradMode mode(gradients && call.grad_mode);
      if (autocast) {
        AutocastGuard::set(call.autocast);
      }
      call.run(values, stack, key, impl_->stage_name);
    } else {
      if (autocast) {
        AutocastGuard::set({});
      }
      std::get<std::unique_ptr<const RegionCall>>(step.call)->run(values);
    }
    for (const int place : step.last_uses) {
      values[static_cast<std::size_t>(place)].reset();
    }
  }
  ChunkResult result;
  for (const int local : impl_->output_locals) {
    result.outputs.push_back(values[static_cast<std::size_t>(local)]);
  }
  if (impl_->loss_local != kAbsent) {
    result.loss = values[static_cast<std::size_t>(impl_->loss_local)];
  }
  return result;
}

}  // namespace stagecraft
