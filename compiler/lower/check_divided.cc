#include "stagecraft/compiler/lower/check_divided.h"

#include <algorithm>
#include <exception>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/randn.h>
#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/stage/division.h"
#include "stagecraft/compiler/stage/interpreter.h"

namespace stagecraft {
namespace {

using Tensors = std::vector<at::Tensor>;

/// The largest difference that summing in another order makes, relative to the largest value.
double tolerance(at::ScalarType type) {
  return at::isReducedFloatingType(type) ? 5e-2 : 1e-4;
}

class DividedCheck {
 public:
  DividedCheck(const CompiledProgram& program,
               const StageProgram& stage,
               std::int32_t number,
               std::int64_t ranks)
      : program_(program),
        stage_(stage),
        number_(number),
        chunk_(stage.chunks[static_cast<std::size_t>(number)]),
        ranks_(ranks) {}

  void run() {
    if (const std::string why = misfit_of_division(stage_, number_, ranks_); !why.empty()) {
      refuse(why);
    }
    compare();
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(Errc::CompilePartition,
                fmt::format("ranks cannot divide chunk {} of stage \"{}\" (shard): it {}",
                            number_,
                            stage_.name,
                            why));
  }

  /// Returns the state with parameters for the last rank, or for all.
  [[nodiscard]] StageState state(bool divided) const {
    StageState state;
    for (const StageParameter& parameter : stage_.parameters) {
      const at::Tensor& whole =
          program_.graph.parameters[static_cast<std::size_t>(parameter.position)].tensor;
      state.parameters.push_back(
          divided && uses(chunk_, parameter.value) ? last_part(whole.detach()) : whole.detach());
    }
    for (const StageBuffer& buffer : stage_.buffers) {
      state.buffers.push_back(
          program_.graph.buffers[static_cast<std::size_t>(buffer.position)].tensor);
    }
    return state;
  }

  [[nodiscard]] at::Tensor last_part(const at::Tensor& whole) const {
    const std::int64_t size = whole.size(0) / ranks_;
    return whole.narrow(0, whole.size(0) - size, size);
  }

  [[nodiscard]] Tensors drawn_inputs(std::uint64_t seed) const {
    at::Generator generator = at::detail::createCPUGenerator(seed);
    Tensors inputs;
    for (const ValueId input : chunk_.inputs) {
      const Value& facts = stage_.at(input);
      inputs.push_back(
          at::randn(facts.sizes, generator, at::TensorOptions(at::kFloat)).to(facts.dtype));
    }
    return inputs;
  }

  [[nodiscard]] Tensors run_on(const Tensors& inputs, bool divided) const {
    try {
      return ChunkInterpreter(stage_, chunk_).run(inputs, state(divided), {}).outputs;
    } catch (const std::exception& error) {
      const std::string text = error.what();
      refuse(
          fmt::format("does not run on a part of its experts: {}. Use operators that take sizes "
                      "from their operands (bmm, einsum)",
                      text.substr(0, text.find('\n'))));
    }
  }

  /// The ranks have two kinds of samples, which is enough to tell ranks from each other.
  void compare() const {
    const at::NoGradGuard no_grad;
    const std::vector<Tensors> samples{drawn_inputs(1), drawn_inputs(2)};
    const std::vector<Tensors> whole{run_on(samples[0], false), run_on(samples[1], false)};
    const auto of_last = [&](const std::vector<Tensors>& all, std::size_t number) {
      Tensors parts;
      for (std::int64_t rank = 0; rank < ranks_; ++rank) {
        parts.push_back(last_part(all[static_cast<std::size_t>(rank % 2)][number]));
      }
      return at::cat(parts, 1);
    };
    Tensors inputs;
    for (std::size_t i = 0; i < chunk_.inputs.size(); ++i) {
      inputs.push_back(of_last(samples, i));
    }
    const Tensors divided = run_on(inputs, true);
    for (std::size_t o = 0; o < divided.size(); ++o) {
      const at::Tensor expected = of_last(whole, o);
      if (divided[o].sizes() != expected.sizes()) {
        refuse(
            fmt::format("makes sizes {} from a part of its experts, expected {}: it has sizes as "
                        "numbers in it; use operators that take them from their operands (bmm, "
                        "einsum)",
                        c10::str(divided[o].sizes()),
                        c10::str(expected.sizes())));
      }
      const double largest = expected.numel() == 0 ? 0.0 : expected.abs().max().item().toDouble();
      const double apart =
          expected.numel() == 0 ? 0.0 : (divided[o] - expected).abs().max().item().toDouble();
      if (!(apart <= tolerance(expected.scalar_type()) * largest)) {
        refuse(
            fmt::format("computes something else from a part of its experts, by {:.2g} of "
                        "{:.2g}: each expert must see its own samples and weights alone, and "
                        "each sample must be computed by itself",
                        apart,
                        largest));
      }
    }
  }

  const CompiledProgram& program_;
  const StageProgram& stage_;
  const std::int32_t number_;
  const Chunk& chunk_;
  const std::int64_t ranks_;
};

}  // namespace

void check_divided(const CompiledProgram& program,
                   const StageProgram& stage,
                   std::int32_t chunk,
                   std::int64_t ranks) {
  DividedCheck(program, stage, chunk, ranks).run();
}

}  // namespace stagecraft
