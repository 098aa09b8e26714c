#include "stagecraft/futures/transport/mailbox.h"

#include <optional>

#include <ATen/ops/empty.h>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/error_of.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

const Rank kSender{1}, kOtherSender{2};
const Error kReason(Errc::WorkerFailed, "rank 3 has failed");

Tag tag_of(int plan, int epoch, int edge = 0) {
  return {.plan = PlanId{plan},
          .epoch = Epoch{epoch},
          .submission = Submission{1},
          .edge = EdgeId{edge},
          .microbatch = Microbatch{0}};
}

TEST_CASE("T-1, T-3: a lane pairs tensors and receives in their order, whichever come first",
          "[futures][transport][mailbox]") {
  Mailbox mailbox;
  const Tag tag = tag_of(0, 0);
  mailbox.deliver(kSender, tag, number(1));
  mailbox.deliver(kSender, tag, number(2));
  CHECK(number_from(mailbox.receive(kSender, tag)) == 1);
  CHECK(number_from(mailbox.receive(kSender, tag)) == 2);
  const Future<at::Tensor> third = mailbox.receive(kSender, tag);
  const Future<at::Tensor> fourth = mailbox.receive(kSender, tag);
  CHECK_FALSE(third.ready());
  mailbox.deliver(kSender, tag, number(3));
  CHECK_FALSE(fourth.ready());
  mailbox.deliver(kSender, tag, number(4));
  CHECK(number_from(third) == 3);
  CHECK(number_from(fourth) == 4);
}

TEST_CASE("another sender, or another tag, is another lane", "[futures][transport][mailbox]") {
  Mailbox mailbox;
  mailbox.deliver(kSender, tag_of(0, 0, 5), number(1));
  CHECK_FALSE(mailbox.receive(kOtherSender, tag_of(0, 0, 5)).ready());
  CHECK_FALSE(mailbox.receive(kSender, tag_of(0, 0, 6)).ready());
  CHECK_FALSE(mailbox.receive(kSender, tag_of(1, 0, 5)).ready());
  CHECK_FALSE(mailbox.receive(kSender, tag_of(0, 1, 5)).ready());
  CHECK(number_from(mailbox.receive(kSender, tag_of(0, 0, 5))) == 1);
}

TEST_CASE("tensors without a receive count as waiting until they leave",
          "[futures][transport][mailbox]") {
  Mailbox mailbox;
  const auto deliver = [&](int epoch, std::int64_t bytes) {
    mailbox.deliver(kSender, tag_of(0, epoch), at::empty({bytes}, at::kByte));
  };
  const Future<at::Tensor> awaited = mailbox.receive(kSender, tag_of(0, 3));
  deliver(3, 1000);  // it is awaited
  CHECK(mailbox.bytes_waiting() == 0);
  deliver(0, 100);
  deliver(1, 20);
  deliver(1, 5);
  deliver(2, 3);
  CHECK(mailbox.bytes_waiting() == 128);
  (void)mailbox.receive(kSender, tag_of(0, 1));
  CHECK(mailbox.bytes_waiting() == 108);
  mailbox.advance(PlanId{0}, Epoch{2}, kReason);
  CHECK(mailbox.bytes_waiting() == 3);
  mailbox.close(kReason);
  CHECK(mailbox.bytes_waiting() == 0);
}

TEST_CASE("T-5: what is before the epoch of its plan ends, and is refused from then on",
          "[futures][transport][mailbox]") {
  Mailbox mailbox;
  const Future<at::Tensor> old = mailbox.receive(kSender, tag_of(0, 1));
  const Future<at::Tensor> present = mailbox.receive(kSender, tag_of(0, 2));
  const Future<at::Tensor> of_other_plan = mailbox.receive(kSender, tag_of(1, 1));
  mailbox.advance(PlanId{0}, Epoch{2}, kReason);
  const Error error = error_of(old);
  CHECK(error.code() == Errc::WorkerAborted);
  CHECK(error.context().peer == "rank 1");
  CHECK_THAT(error.what(),
             ContainsSubstring("the epoch is over") && ContainsSubstring("rank 3 has failed"));
  CHECK(failure_of(mailbox.receive(kSender, tag_of(0, 0))) == Errc::WorkerAborted);
  CHECK_FALSE(present.ready());
  CHECK_FALSE(of_other_plan.ready());

  const at::Tensor late = number(1);
  mailbox.deliver(kSender, tag_of(0, 1), late);
  CHECK(mailbox.refused() == 1);
  CHECK(late.use_count() == 1);  // it was not kept
  mailbox.deliver(kSender, tag_of(0, 2), number(2));
  mailbox.deliver(kSender, tag_of(1, 1), number(3));
  CHECK(number_from(present) == 2);
  CHECK(number_from(of_other_plan) == 3);
  CHECK(mailbox.refused() == 1);
}

TEST_CASE("T-5: an epoch that is not newer changes nothing", "[futures][transport][mailbox]") {
  Mailbox mailbox;
  mailbox.advance(PlanId{0}, Epoch{5}, kReason);
  const Future<at::Tensor> present = mailbox.receive(kSender, tag_of(0, 5));
  mailbox.advance(PlanId{0}, Epoch{5}, Error(Errc::Internal, "again"));
  mailbox.advance(PlanId{0}, Epoch{3}, Error(Errc::Internal, "an old abort"));
  CHECK_FALSE(present.ready());
  CHECK_THAT(error_of(mailbox.receive(kSender, tag_of(0, 4))).what(),
             ContainsSubstring("rank 3 has failed"));
}

TEST_CASE("T-5: accepts() and require_current() know the epoch of each plan",
          "[futures][transport][mailbox]") {
  Mailbox mailbox;
  CHECK(mailbox.accepts(tag_of(0, 0)));
  mailbox.advance(PlanId{0}, Epoch{2}, kReason);
  CHECK_FALSE(mailbox.accepts(tag_of(0, 1)));
  CHECK(mailbox.accepts(tag_of(0, 2)));
  CHECK(mailbox.accepts(tag_of(1, 1)));
  CHECK(thrown_by([&] { mailbox.require_current(PlanId{0}, Epoch{1}); }) == Errc::WorkerAborted);
  CHECK_FALSE(thrown_by([&] { mailbox.require_current(PlanId{0}, Epoch{2}); }));
  CHECK_FALSE(thrown_by([&] { mailbox.require_current(PlanId{1}, Epoch{1}); }));
  mailbox.close(kReason);
  CHECK_FALSE(mailbox.accepts(tag_of(0, 2)));
  CHECK(thrown_by([&] { mailbox.require_current(PlanId{1}, Epoch{9}); }) == Errc::TransportClosed);
}

TEST_CASE("T-4: close ends every receive with its first reason, and refuses all that comes",
          "[futures][transport][mailbox]") {
  Mailbox mailbox;
  const Future<at::Tensor> pending = mailbox.receive(kSender, tag_of(0, 0));
  CHECK_FALSE(thrown_by([&] { mailbox.check_open(); }));
  mailbox.close(kReason);
  mailbox.close(Error(Errc::Internal, "a later reason"));
  for (const Future<at::Tensor>& receive : {pending, mailbox.receive(kSender, tag_of(0, 7))}) {
    const Error error = error_of(receive);
    CHECK(error.code() == Errc::TransportClosed);
    CHECK_THAT(error.what(), ContainsSubstring("rank 3 has failed"));
  }
  mailbox.deliver(kSender, tag_of(0, 0), number(1));
  CHECK(mailbox.refused() == 1);
  CHECK(thrown_by([&] { mailbox.check_open(); }) == Errc::TransportClosed);
}

TEST_CASE("T-4: a mailbox that is destroyed ends its receives", "[futures][transport][mailbox]") {
  std::optional<Mailbox> mailbox(std::in_place);
  const Future<at::Tensor> pending = mailbox->receive(kSender, tag_of(0, 0));
  mailbox.reset();
  CHECK(failure_of(pending) == Errc::TransportClosed);
}

TEST_CASE("T-6: a callback may use the mailbox", "[futures][transport][mailbox]") {
  Mailbox mailbox;
  const Tag tag = tag_of(0, 0);
  Future<at::Tensor> next;
  const Future<at::Tensor> first = mailbox.receive(kSender, tag);
  first.on_ready([&] { next = mailbox.receive(kSender, tag); });
  mailbox.deliver(kSender, tag, number(1));
  std::optional<Errc> after_close;
  next.on_ready([&] { after_close = failure_of(mailbox.receive(kSender, tag)); });
  mailbox.close(kReason);
  CHECK(after_close == Errc::TransportClosed);
}

}  // namespace
}  // namespace stagecraft
