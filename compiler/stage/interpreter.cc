#include "stagecraft/compiler/stage/interpreter.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include "stagecraft/base/check.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/graph/autocast_guard.h"
#include "stagecraft/compiler/graph/tensor_hooks.h"
#include "stagecraft/compiler/stage/operator_call.h"

namespace stagecraft {
namespace {

constexpr int kAbsent = OperatorCall::kAbsent;

/// Places gives each value a place, in the order of first use.
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
  [[nodiscard]] std::size_t count() const { return static_cast<std::size_t>(count_); }

 private:
  std::unordered_map<ValueId, int> places_;
  int count_ = 0;
};

struct ChunkStep {
  OperatorCall call;
  std::vector<int> last_uses;  ///< places that no later step reads
};

}  // namespace

struct ChunkInterpreter::Impl {
  /// Bound is an operand that is part of the stage's state, by its position there.
  struct Bound {
    std::size_t position = 0;
    int local = kAbsent;
    std::shared_ptr<const TensorHooks> hooks;  ///< null if it has none
  };
  struct Input {
    int local = kAbsent;
    bool written = false;  ///< in place, so the run gets a copy
    ValueId value;
    Value expected;
    bool of_batch = false;  ///< an input of the model, or a label
    bool any_size = false;  ///< of a divided chunk
  };

  struct BoundConstant {
    int local = kAbsent;
    bool written = false;  ///< likewise
    at::Tensor tensor;
  };

  std::string stage_name;
  c10::Device device;
  Places place_of;
  std::vector<ChunkStep> steps;
  std::vector<Input> inputs;
  std::vector<Bound> parameters, buffers;
  std::vector<BoundConstant> constants;
  std::vector<int> output_locals;
  int loss_local = kAbsent;
  bool any_autocast = false;

  Impl(const StageProgram& stage, const Chunk& chunk, const c10::Device& d)
      : stage_name(stage.name), device(d) {
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
                        .expected = value,
                        .of_batch = is_of_batch(stage, id),
                        .any_size = chunk.divided});
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
        constants.push_back({.local = place_of(constant.value),
                             .written = written_sets.contains(stage.at(constant.value).alias_set),
                             .tensor = constant.tensor.to(device)});
      }
    }
  }

  void bind_calls(const StageProgram& stage, const Chunk& chunk) {
    steps.reserve(chunk.nodes.size());
    for (const Node& node : chunk.nodes) {
      steps.push_back({OperatorCall(stage, node, std::ref(place_of), device), {}});
      any_autocast = any_autocast || node.autocast.enabled;
    }
  }

  void find_last_uses() {
    std::set<int> needed(output_locals.begin(), output_locals.end());
    needed.insert(loss_local);
    for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
      for (const int place : step->call.places()) {
        if (needed.insert(place).second) {
          step->last_uses.push_back(place);
        }
      }
    }
  }

  [[nodiscard]] static bool is_of_batch(const StageProgram& stage, ValueId value) {
    return std::ranges::any_of(stage.inputs, [&](const StageInput& input) {
      return input.value == value && input.source != StageInput::Source::Stage;
    });
  }

  /// Autocast of an accelerator narrows other operators than that of the CPU, where the program was
  /// captured.
  [[nodiscard]] bool has_type_of(const at::Tensor& tensor, const Input& input) const {
    const at::ScalarType expected = input.expected.dtype;
    return tensor.scalar_type() == expected ||
           (!is_program_device(device) && !input.of_batch && tensor.is_floating_point() &&
            at::isFloatingType(expected));
  }

  void check_input(const at::Tensor& tensor, const Input& input) const {
    const Value& expected = input.expected;
    const bool fits =
        tensor.sizes() == at::IntArrayRef(expected.sizes) ||
        (input.any_size && tensor.dim() == static_cast<std::int64_t>(expected.sizes.size()));
    if (!fits || !has_type_of(tensor, input)) {
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
    for (const auto& [local, written, tensor] : constants) {
      value(local) = written ? tensor.clone() : tensor;
    }
    return values;
  }
};

ChunkInterpreter::ChunkInterpreter(const StageProgram& stage,
                                   const Chunk& chunk,
                                   const c10::Device& device)
    : impl_(std::make_unique<Impl>(stage, chunk, device)) {}
ChunkInterpreter::~ChunkInterpreter() = default;
ChunkInterpreter::ChunkInterpreter(ChunkInterpreter&&) noexcept = default;
ChunkInterpreter& ChunkInterpreter::operator=(ChunkInterpreter&&) noexcept = default;

ChunkResult ChunkInterpreter::run(const std::vector<at::Tensor>& inputs,
                                  const StageState& state,
                                  const RandomKey& key,
                                  ChunkWatch* watch) const {
  const bool gradients = at::GradMode::is_enabled();
  std::vector<at::Tensor> values = impl_->bind(inputs, state);
  std::optional<AutocastGuard> autocast;
  if (impl_->any_autocast) {
    autocast.emplace(impl_->device.type());
  }
  torch::jit::Stack stack;
  for (std::size_t node = 0; node < impl_->steps.size(); ++node) {
    const auto& [call, last_uses] = impl_->steps[node];
    if (watch != nullptr) {
      watch->before(node);
    }
    {
      const at::AutoGradMode mode(gradients && call.grad_mode);
      if (autocast) {
        AutocastGuard::set(call.autocast, impl_->device.type());
      }
      call.run(values, stack, key, impl_->stage_name);
    }
    for (const int place : last_uses) {
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
