#include "stagecraft/actors/executor/nccl/nccl_links.h"

#include <ATen/ops/empty_strided.h>
#include <ATen/ops/zeros.h>
#include <c10/core/ScalarType.h>
#include <fmt/format.h>

#include "stagecraft/actors/executor/nccl/ticket.h"
#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

/// The members of a pair's communicator.
constexpr int kSender = 0, kReceiver = 1;

/// Returns the tensor with each of its numbers in memory, once: NCCL moves bytes.
at::Tensor plain(const at::Tensor& tensor) {
  const at::Tensor values =
      (tensor._is_zerotensor() ? tensor.clone() : tensor).resolve_conj().resolve_neg();
  return values.is_non_overlapping_and_dense() ? values : values.contiguous();
}

}  // namespace

bool NcclLinks::sends_to(Rank peer) const {
  const auto found = links_.find({self_, peer});
  return found != links_.end() && found->second.end != nullptr;
}

bool NcclLinks::receives_from(Rank peer) const {
  const auto found = links_.find({peer, self_});
  return found != links_.end() && found->second.end != nullptr;
}

void NcclLinks::connect(const std::vector<RankPair>& pairs) {
  if (epoch_ != connector_.epoch()) {
    links_.clear();
    epoch_ = connector_.epoch();
  }
  for (const RankPair& pair : pairs) {  // keeps NJ-2
    if (!links_.contains(pair)) {
      links_.emplace(pair, connected(pair));
    }
  }
}

/// A link is connected by a transfer of one byte (NJ-2).
NcclLinks::Link NcclLinks::connected(const RankPair& pair) {
  const auto end = connector_.join({pair.first, pair.second});
  if (!end) {
    return {};
  }
  const at::Tensor byte = at::zeros({1}, at::TensorOptions(connector_.place()).dtype(at::kByte));
  if (pair.first == self_) {
    connector_.make(*end, {pair.second}, [&] {
      end->send(kReceiver, byte.const_data_ptr(), 1, connector_.stream());
    });
  } else {
    connector_.make(*end, {pair.first}, [&] {
      end->receive(kSender, byte.mutable_data_ptr(), 1, connector_.stream());
    });
  }
  return {.end = end};
}

at::Tensor NcclLinks::send(Rank to, const at::Tensor& tensor) {
  Link& link = links_.at({self_, to});
  const at::Tensor dense = plain(tensor);  // maybe a copy, made on this stream
  if (dense.nbytes() > 0) {
    connector_.make(*link.end, {to}, [&] {
      link.end->send(kReceiver, dense.const_data_ptr(), dense.nbytes(), connector_.stream());
    });
  }
  return to_ticket(dense, link.given++);
}

at::Tensor NcclLinks::receive(Rank from, const at::Tensor& ticket) {
  Link& link = links_.at({from, self_});
  const Ticket told = read_ticket(ticket, from);
  if (told.number != link.given) {
    throw Error(Errc::PlanInvalid,
                fmt::format("{} sends this as its transfer {} to {}, which receives it as its "
                            "transfer {}: on devices, tensors between two ranks are received in "
                            "the order in which they are sent",
                            peer_name(from),
                            told.number,
                            peer_name(self_),
                            link.given));
  }
  ++link.given;
  at::Tensor tensor = at::empty_strided(
      told.sizes, told.strides, at::TensorOptions(connector_.place()).dtype(told.dtype));
  if (tensor.nbytes() > 0) {
    connector_.make(*link.end, {from}, [&] {
      link.end->receive(kSender, tensor.mutable_data_ptr(), tensor.nbytes(), connector_.stream());
    });
  }
  return tensor;
}

}  // namespace stagecraft
