#include "stagecraft/actors/executor/nccl/nccl_collective.h"

#include <algorithm>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>

#include "stagecraft/actors/executor/nccl/ticket.h"
#include "stagecraft/base/check.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/libtorch/program_device.h"
#include "stagecraft/futures/collective/exchange.h"

namespace stagecraft {
namespace {

using c10::impl::VirtualGuardImpl;
using collective::Tensors;

/// Makes the memory of a tensor wait, once freed, for the stream.
void keep_for(const c10::Stream& stream, const at::Tensor& tensor) {
  VirtualGuardImpl(stream.device_type()).recordDataPtrOnStream(tensor.storage().data_ptr(), stream);
}

/// Sums the parts into the first argument, in their order.
void sum_into(at::Tensor sum, const Tensors& parts) {
  at::add_out(sum, parts[0], parts[1]);
  for (std::size_t i = 2; i < parts.size(); ++i) {
    sum.add_(parts[i]);
  }
}

}  // namespace

/// An operation whose work its stream has.
class NcclCollective::Started final : public PendingResult {
 public:
  Started(NcclConnector& connector,
          std::string name,
          const Group& group,
          std::unique_ptr<PendingResult> tickets,
          std::int64_t number,
          at::Tensor result)
      : connector_(connector),
        name_(std::move(name)),
        group_(group),
        tickets_(std::move(tickets)),
        number_(number),
        result_(std::move(result)),
        stream_(connector.stream()),
        done_(connector.place().type()) {
    done_.record(stream_);
  }

  [[nodiscard]] at::Tensor wait(Deadline deadline) override {
    const std::unique_ptr<PendingResult> tickets = std::exchange(tickets_, nullptr);
    SC_CHECK(tickets != nullptr, name_ + " was waited for twice");
    check(tickets->wait(deadline));
    connector_.require_current();
    is_over_ = true;
    if (const c10::Stream reader = connector_.stream(); reader != stream_) {
      done_.block(reader);
      keep_for(reader, result_);
    }
    return std::move(result_);
  }
  void abandon() override {
    if (!std::exchange(is_over_, true)) {
      connector_.abort();  // the epoch is over (CL-2)
      done_.synchronize();
    }
  }

 private:
  /// Keeps NS-2.
  void check(const at::Tensor& tickets) const {
    const std::vector<Rank>& ranks = group_.ranks;
    const std::int64_t size = tickets.numel() / std::ssize(ranks);
    Tensors started;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      const Ticket told =
          read_ticket(tickets.narrow(0, static_cast<std::int64_t>(i) * size, size), ranks[i]);
      if (told.number != number_) {
        throw Error(
            Errc::PlanInvalid,
            fmt::format("{} is operation {} of its communicator on {}, and {} here: on devices, "
                        "groups of the same ranks and stream start in one order",
                        name_,
                        told.number,
                        peer_name(ranks[i]),
                        number_));
      }
      started.push_back(
          at::empty(told.sizes, at::TensorOptions().dtype(told.dtype).device(at::kMeta)));
    }
    collective::check_alike(name_, ranks, started);
  }

  NcclConnector& connector_;
  const std::string name_;
  const Group group_;
  std::unique_ptr<PendingResult> tickets_;  // null after the wait
  bool is_over_ = false;                    // waited for with success, or given up
  const std::int64_t number_;
  at::Tensor result_;
  const c10::Stream stream_;
  c10::Event done_;
};

NcclCollective::NcclCollective(
    Rank self, NcclConnector& connector, Collective& by_host, DeviceReduce reduce, int most_rounds)
    : self_(self),
      connector_(connector),
      by_host_(by_host),
      reduce_(reduce),
      most_rounds_(most_rounds) {}

void NcclCollective::connect(const std::vector<NcclGroups>& groups) {
  if (epoch_ == connector_.epoch()) {
    return;
  }
  links_.clear();
  for (const NcclGroups& one : groups) {  // keeps NJ-2
    links_.push_back(connected(one));
  }
  epoch_ = connector_.epoch();
}

/// A group is connected by a call of each kind (NJ-2).
NcclCollective::GroupLink NcclCollective::connected(const NcclGroups& groups) {
  const std::vector<Rank>& ranks = groups.ranks;
  GroupLink link{.groups = groups,
                 .end = connector_.join(ranks),
                 .peers = ranks,
                 .self = std::ranges::find(ranks, self_) - ranks.begin(),
                 .members = std::ssize(ranks)};
  link.peers.erase(link.peers.begin() + link.self);
  if (!link.end) {
    return link;
  }
  const at::TensorOptions here(connector_.place());
  const at::Tensor received = exchanged(link, at::zeros({link.members}, here.dtype(at::kByte)));
  (void)gathered(link, received.narrow(0, 0, 1));
  if (reduce_ == DeviceReduce::Nccl) {
    reduce_by_nccl(link, at::zeros({1}, here.dtype(at::kFloat)));
  }
  return link;
}

NcclCollective::GroupLink* NcclCollective::link_of(const Group& group,
                                                   const Sequence& sequence,
                                                   const at::Tensor& contribution) {
  if (!contribution.defined() || is_program_device(contribution.device()) ||
      epoch_ != sequence.epoch) {
    return nullptr;
  }
  const auto found = std::ranges::find_if(links_, [&](const GroupLink& link) {
    return link.groups.ranks == group.ranks &&
           std::ranges::find(link.groups.ids, group.id) != link.groups.ids.end();
  });
  if (found == links_.end() || !found->end) {
    return nullptr;
  }
  collective::check_start(group, self_, contribution);
  return &*found;
}

/// `give`: gives the stream the operation, and returns its result.
template <class Give>
std::unique_ptr<PendingResult> NcclCollective::start(const char* name,
                                                     GroupLink& link,
                                                     const Group& group,
                                                     const Sequence& sequence,
                                                     const at::Tensor& contribution,
                                                     Give&& give) {
  const at::NoGradGuard no_grad;
  auto tickets = by_host_.all_gather(group, sequence, to_ticket(contribution, link.given));
  keep_for(connector_.stream(), contribution);
  at::Tensor result = give();
  return std::make_unique<Started>(
      connector_,
      fmt::format("{} {} of group {}", name, sequence.number, group.id),
      group,
      std::move(tickets),
      link.given++,
      std::move(result));
}

std::unique_ptr<PendingResult> NcclCollective::all_reduce(const Group& group,
                                                          const Sequence& sequence,
                                                          at::Tensor buffer) {
  GroupLink* const link = link_of(group, sequence, buffer);
  if (link == nullptr) {
    return by_host_.all_reduce(group, sequence, std::move(buffer));
  }
  return start("all_reduce", *link, group, sequence, buffer, [&] {
    if (reduce_ == DeviceReduce::Nccl && Nccl::has_sums_of(buffer.scalar_type())) {
      reduce_by_nccl(*link, buffer);
    } else {
      reduce_by_rank(*link, buffer);
    }
    return buffer;
  });
}

std::unique_ptr<PendingResult> NcclCollective::reduce_scatter(const Group& group,
                                                              const Sequence& sequence,
                                                              at::Tensor contribution) {
  GroupLink* const link = link_of(group, sequence, contribution);
  if (link == nullptr) {
    return by_host_.reduce_scatter(group, sequence, std::move(contribution));
  }
  (void)collective::equal_parts(contribution, group.ranks.size());  // before anything is sent
  return start("reduce_scatter", *link, group, sequence, contribution, [&] {
    const Tensors parts =
        collective::equal_parts(exchanged(*link, contribution), group.ranks.size());
    at::Tensor sum = at::empty_like(parts.front());
    sum_into(sum, parts);
    return sum;
  });
}

std::unique_ptr<PendingResult> NcclCollective::all_gather(const Group& group,
                                                          const Sequence& sequence,
                                                          at::Tensor contribution) {
  GroupLink* const link = link_of(group, sequence, contribution);
  if (link == nullptr) {
    return by_host_.all_gather(group, sequence, std::move(contribution));
  }
  return start("all_gather", *link, group, sequence, contribution, [&] {
    return gathered(*link, contribution);
  });
}

std::unique_ptr<PendingResult> NcclCollective::all_to_all(const Group& group,
                                                          const Sequence& sequence,
                                                          at::Tensor contribution) {
  GroupLink* const link = link_of(group, sequence, contribution);
  if (link == nullptr) {
    return by_host_.all_to_all(group, sequence, std::move(contribution));
  }
  (void)collective::equal_parts(contribution, group.ranks.size());
  return start("all_to_all", *link, group, sequence, contribution, [&] {
    return exchanged(*link, contribution);
  });
}

at::Tensor NcclCollective::exchanged(GroupLink& link, const at::Tensor& parts) {
  at::Tensor received = at::empty_like(parts);
  const std::size_t bytes = parts.nbytes() / static_cast<std::size_t>(link.members);
  const auto rounds = static_cast<int>(link.members);
  for (int first = 0; bytes > 0 && first < rounds; first += most_rounds_) {
    connector_.make(*link.end, link.peers, [&] {
      link.end->all_to_all(parts.const_data_ptr(),
                           received.mutable_data_ptr(),
                           bytes,
                           first,
                           std::min(most_rounds_, rounds - first),
                           connector_.stream());
    });
  }
  return received;
}

at::Tensor NcclCollective::gathered(GroupLink& link, const at::Tensor& part) {
  at::Tensor all = at::empty({part.numel() * link.members}, part.options());
  gather_into(link, part, all);
  return all;
}

void NcclCollective::gather_into(GroupLink& link, const at::Tensor& part, const at::Tensor& all) {
  if (part.nbytes() > 0) {
    connector_.make(*link.end, link.peers, [&] {
      link.end->all_gather(
          part.const_data_ptr(), all.mutable_data_ptr(), part.nbytes(), connector_.stream());
    });
  }
}

void NcclCollective::reduce_by_nccl(GroupLink& link, const at::Tensor& buffer) {
  if (buffer.numel() > 0) {
    connector_.make(*link.end, link.peers, [&] {
      link.end->all_reduce(
          buffer.mutable_data_ptr(), buffer.numel(), buffer.scalar_type(), connector_.stream());
    });
  }
}

/// Keeps NS-1: each member sums its part of the buffers.
void NcclCollective::reduce_by_rank(GroupLink& link, const at::Tensor& buffer) {
  const std::int64_t size = (buffer.numel() + link.members - 1) / link.members;
  const bool is_padded = size * link.members > buffer.numel();
  const at::Tensor all = is_padded ? at::zeros({size * link.members}, buffer.options()) : buffer;
  if (is_padded) {
    all.narrow(0, 0, buffer.numel()).copy_(buffer);
  }
  const at::Tensor own = all.narrow(0, link.self * size, size);
  sum_into(own, collective::equal_parts(exchanged(link, all), link.peers.size() + 1));
  gather_into(link, own, all);
  if (is_padded) {
    buffer.copy_(all.narrow(0, 0, buffer.numel()));
  }
}

}  // namespace stagecraft
