# cmake -D SOURCE_DIR=... -D OUTPUT=... -P git_revision.cmake
# Writes a C++ file with the git revision of the checkout, "-dirty" behind it when tracked files were changed, "unknown"
# outside a checkout of its own (an unpacked archive, even inside another repository).
set(ENV{GIT_OPTIONAL_LOCKS} 0)  # never stands in the way of a git command of the user
set(revision unknown)
if(EXISTS ${SOURCE_DIR}/.git)
  execute_process(COMMAND git -C ${SOURCE_DIR} describe --always --dirty --abbrev=12 --exclude=*
    OUTPUT_VARIABLE described OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(NOT failed)
    set(revision ${described})
  endif()
endif()
set(content "namespace gradflow {\nextern const char* const git_revision;\nconst char* const git_revision = \"${revision}\";\n}\n")
set(present)
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} present)
endif()
if(NOT present STREQUAL content)
  file(WRITE ${OUTPUT} "${content}")
endif()
