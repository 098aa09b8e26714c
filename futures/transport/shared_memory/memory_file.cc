#include "stagecraft/futures/transport/shared_memory/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;

Error unusable(const std::string& what) {
  return Error(Errc::TransportRefused, "shared memory: " + what);
}

/// Returns the size that the system lets a file have. A larger one would end the process by a
/// signal.
std::int64_t allowed(std::int64_t bytes) {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return bytes;
  }
  return std::min(bytes, static_cast<std::int64_t>(limit.rlim_cur));
}

}  // namespace

Mapping::Mapping(const Descriptor& file, std::int64_t offset, std::int64_t bytes)
    : bytes_(static_cast<std::size_t>(bytes)) {
  // Populated, because page faults would take longer than the first copy.
  void* const data = mmap(nullptr,
                          bytes_,
                          PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_POPULATE,
                          file.number(),
                          static_cast<off_t>(offset));
  if (data == MAP_FAILED) {
    throw unusable(fmt::format("cannot map {} bytes: {}", bytes, std::strerror(errno)));
  }
  data_ = data;
}

Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Mapping::~Mapping() {
  if (data_ != nullptr) {
    munmap(data_, bytes_);
  }
}

std::int64_t MemoryFile::usual_limit() {
  return sysconf(_SC_PHYS_PAGES) / 2 * sysconf(_SC_PAGESIZE);
}

MemoryFile MemoryFile::make(std::int64_t bytes) {
  const std::int64_t size = allowed(kFirstSlot + bytes) / kPage * kPage;
  if (size < kFirstSlot + kPage) {
    throw unusable(
        fmt::format("{} bytes were wanted, and the limit of file sizes is {}: raise "
                    "ulimit -f",
                    kFirstSlot + bytes,
                    allowed(kFirstSlot + bytes)));
  }
  Descriptor file(memfd_create("stagecraft", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file || ftruncate(file.number(), size) != 0 ||
      fallocate(file.number(), 0, 0, kFirstSlot) != 0 ||
      fcntl(file.number(), F_ADD_SEALS, kSeals | F_SEAL_SEAL) != 0) {
    throw unusable(fmt::format("cannot make {} bytes: {}", size, std::strerror(errno)));
  }
  return MemoryFile(std::move(file));
}

MemoryFile::MemoryFile(Descriptor file) : file_(std::move(file)) {
  struct stat facts {};
  const int seals = fcntl(file_.number(), F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals || fstat(file_.number(), &facts) != 0) {
    throw unusable("the file is not sealed, so it could shrink");
  }
  size_ = facts.st_size;
  if (size_ < kFirstSlot) {
    throw unusable(fmt::format("the file has {} bytes, expected {} or more", size_, kFirstSlot));
  }
  mapped_states_ = Mapping(file_, 0, kFirstSlot);
  // The system has zeroed the memory, and SlotState::Free is 0.
  states_ = {static_cast<State*>(mapped_states_.data()), kMostSlots};
}

}  // namespace stagecraft
