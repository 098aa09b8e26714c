#include "stagecraft/actors/executor/stage/gradient_sums.h"

#include <algorithm>
#include <utility>

#include <ATen/ScalarOps.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/mul.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include "stagecraft/base/check.h"

namespace stagecraft {

struct GradientSums::Arrivals {
  enum class Turn : std::uint8_t {
    Comes,    ///< arrives with all others
    IsTaken,  ///< to be taken as soon as autograd has it
    Taken,
  };
  std::vector<at::Tensor> sums;
  std::vector<Turn> turns;  // one per sum
  std::vector<bool> begun;  // likewise: whether it has gradients
  double weight = 1.0;      // of the gradients that are taken

  void add(std::size_t i, const at::Tensor& gradient, double by) {
    const at::NoGradGuard no_grad;
    at::Tensor& sum = sums[i];
    if (begun[i]) {
      sum.add_(gradient, by);
    } else if (by == 1.0) {
      sum.copy_(gradient);
    } else {
      at::mul_out(sum, gradient, at::native::wrapped_scalar_tensor(by));
    }
  }
};

class GradientSums::Hook : public torch::autograd::FunctionPreHook {
 public:
  Hook(std::shared_ptr<Arrivals> arrivals, std::size_t number)
      : arrivals_(std::move(arrivals)), number_(number) {}

  torch::autograd::variable_list operator()(
      const torch::autograd::variable_list& gradients) override {
    Arrivals::Turn& turn = arrivals_->turns[number_];
    if (turn != Arrivals::Turn::IsTaken || !gradients[0].defined()) {
      return gradients;
    }
    arrivals_->add(number_, gradients[0], arrivals_->weight);
    turn = Arrivals::Turn::Taken;
    return {at::Tensor()};
  }

 private:
  std::shared_ptr<Arrivals> arrivals_;
  std::size_t number_;
};

GradientSums::GradientSums(std::vector<at::Tensor> sums, const std::vector<at::Tensor>& leaves)
    : arrivals_(std::make_shared<Arrivals>()) {
  SC_CHECK(leaves.empty() || sums.size() == leaves.size(), "one sum per trained parameter");
  arrivals_->turns.resize(sums.size());
  arrivals_->begun.resize(sums.size());
  arrivals_->sums = std::move(sums);
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    torch::autograd::impl::add_hook(leaves[i], std::make_unique<Hook>(arrivals_, i));
  }
}

GradientSums::~GradientSums() = default;

void GradientSums::begin() {
  std::fill(arrivals_->begun.begin(), arrivals_->begun.end(), false);
  std::ranges::fill(arrivals_->turns, Arrivals::Turn::Comes);
}

void GradientSums::begin(const std::vector<std::size_t>& which) {
  for (const std::size_t i : which) {
    arrivals_->begun[i] = false;
    arrivals_->turns[i] = Arrivals::Turn::Comes;
  }
}

void GradientSums::add(const std::vector<std::size_t>& which,
                       const std::vector<at::Tensor>& gradients,
                       double weight) {
  SC_CHECK(gradients.size() == arrivals_->sums.size(), "one gradient per trained parameter");
  for (const std::size_t i : which) {
    if (std::exchange(arrivals_->turns[i], Arrivals::Turn::Comes) == Arrivals::Turn::Taken) {
      SC_CHECK(!gradients[i].defined(), "a gradient that was taken is not returned too");
    } else if (gradients[i].defined()) {
      arrivals_->add(i, gradients[i], weight);
    } else if (!arrivals_->begun[i]) {
      arrivals_->sums[i].zero_();
    }
    arrivals_->begun[i] = true;
  }
}

GradientSums::Taking::Taking(GradientSums& sums,
                             const std::vector<std::size_t>& which,
                             std::optional<double> weight)
    : sums_(sums) {
  if (!weight) {
    return;
  }
  sums_.arrivals_->weight = *weight;
  for (const std::size_t i : which) {
    sums_.arrivals_->turns[i] = Arrivals::Turn::IsTaken;
  }
}

GradientSums::Taking::~Taking() {
  std::ranges::replace(sums_.arrivals_->turns, Arrivals::Turn::IsTaken, Arrivals::Turn::Comes);
}

}  // namespace stagecraft
