/// one_stage_program returns the smallest program that trains, for tests of workers.
#pragma once

#include <ATen/ops/mean.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sub.h>

#include "stagecraft/compiler/compile.h"

namespace stagecraft {

/// Returns the program of loss = mean(w * x - y) with one stage and two microbatches.
inline Program one_stage_program() {
  Workload workload;
  const at::Tensor w = at::ones({3}).set_requires_grad(true);
  workload.parameters = {{"w", w}};
  workload.forward = [w](const Tensors& x) { return Tensors{at::mul(w, x[0])}; };
  workload.loss = [](const Tensors& out, const Tensors& y) {
    return at::mean(at::sub(out[0], y[0]));
  };
  return internal::compile_workload(
      workload,
      {.inputs = {at::ones({4, 3})}, .labels = {at::ones({4, 3})}, .loss = {}, .microbatches = 2});
}

}  // namespace stagecraft
