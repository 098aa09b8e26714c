#include "stagecraft/actors/executor/optimizer/rmsprop.h"

#include <cstdint>

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>

#include "stagecraft/actors/executor/optimizer/update_pass.h"

namespace stagecraft {
namespace {

/// Elements per thread: enough that the data costs more time than the calls. LibTorch splits an
/// element-wise operator over threads into no smaller parts.
constexpr std::int64_t kBlock = 32768;

void update_block(const RMSprop& o,
                  const UpdatePass& pass,
                  const at::Tensor& parameter,
                  const at::Tensor& mean_gradient,
                  const std::vector<at::Tensor>& state) {
  pass.divide(mean_gradient);
  const at::Tensor gradient =
      pass.decay != 0.0 ? mean_gradient.add(parameter, pass.decay) : mean_gradient;
  const at::Tensor& square = state[0];
  square.mul_(o.alpha).addcmul_(gradient, gradient, 1.0 - o.alpha);
  at::Tensor average;
  if (o.centered) {
    const at::Tensor& mean = state.back();
    mean.mul_(o.alpha).add_(gradient, 1.0 - o.alpha);
    average = square.addcmul(mean, mean, -1.0).sqrt_().add_(o.eps);
  } else {
    average = square.sqrt().add_(o.eps);
  }
  if (o.momentum != 0.0) {
    const at::Tensor& buffer = state[1];
    buffer.mul_(o.momentum).addcdiv_(gradient, average);
    parameter.add_(buffer, -pass.rate);
  } else {
    parameter.addcdiv_(gradient, average, -pass.rate);
  }
}

}  // namespace

std::vector<std::string> OptimizerRow<RMSprop>::states(const RMSprop& rmsprop) {
  std::vector<std::string> names{"square_avg"};
  if (rmsprop.momentum != 0.0) {
    names.emplace_back("momentum_buffer");
  }
  if (rmsprop.centered) {
    names.emplace_back("grad_avg");
  }
  return names;
}

/// Updates block by block, so that all operators but the first find their operands in cache.
void OptimizerRow<RMSprop>::update(const RMSprop& rmsprop,
                                   const UpdatePass& pass,
                                   ParameterColumns& columns) {
  const std::int64_t block = kBlock * at::get_num_threads();
  for (std::size_t i = 0; i < columns.parameters.size(); ++i) {
    for (std::int64_t begin = 0; begin < columns.parameters[i].numel(); begin += block) {
      const auto part = [&](const at::Tensor& whole) {
        return whole.view({-1}).slice(0, begin, begin + block);
      };
      std::vector<at::Tensor> state;
      for (const std::vector<at::Tensor>& column : columns.state) {
        state.push_back(part(column[i]));
      }
      update_block(rmsprop, pass, part(columns.parameters[i]), part(columns.gradients[i]), state);
    }
  }
}

}  // namespace stagecraft
