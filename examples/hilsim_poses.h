/* Messages in which another simulator moves hilsim's platform and objects: version 1, little-endian.
 * Described in docs/reference/external-poses.md. For C11 and C++11, on little-endian machines. */
#ifndef HILSIM_POSES_H
#define HILSIM_POSES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define HILSIM_ASSERT static_assert
#else
#define HILSIM_ASSERT _Static_assert
#endif

#define HILSIM_MAGIC 0x50585348u /* "HSXP" */
#define HILSIM_VERSION 1
#define HILSIM_MOST_RECORDS 682

enum hilsim_kind { HILSIM_POSES = 1, HILSIM_OBJECTS = 2, HILSIM_REMOVE = 3, HILSIM_STEP = 4, HILSIM_DONE = 5, HILSIM_BYE = 6 };
enum hilsim_shape { HILSIM_BOX = 1, HILSIM_CYLINDER = 2, HILSIM_SPHERE = 3, HILSIM_MODEL = 4 };
enum hilsim_pose_flags { HILSIM_HAS_VELOCITY = 1, HILSIM_HAS_RATES = 2, HILSIM_IS_HIDDEN = 4 };

#pragma pack(push, 1)

struct hilsim_header {
    uint32_t magic;
    uint8_t version;
    uint8_t kind;
    uint16_t count;
    uint32_t sender;
    uint32_t sequence;
    uint32_t flags;    /* 0 */
    uint32_t reserved; /* 0 */
    int64_t time_ns;   /* on the sender's clock */
};

struct hilsim_pose {
    uint32_t id;           /* 0: the platform */
    uint32_t flags;        /* enum hilsim_pose_flags */
    double position_m[3];  /* world, ENU */
    double orientation[4]; /* w, x, y, z, unit: world from body, FLU */
    float velocity_mps[3]; /* world */
    float rates_radps[3];  /* body */
    uint8_t reserved[8];   /* 0 */
};

struct hilsim_object {
    uint32_t id;          /* at least 1 */
    uint8_t shape;        /* enum hilsim_shape */
    uint8_t label;        /* class for ground truth */
    uint8_t reflectivity; /* code */
    uint8_t reserved;     /* 0 */
    float size_m[3];      /* extents about the middle */
    char name[32];        /* UTF-8, ended by zeros */
    char model[32];       /* for HILSIM_MODEL: object of the rig whose mesh it has */
    uint8_t spare[12];    /* 0 */
};

#pragma pack(pop)

HILSIM_ASSERT(sizeof(struct hilsim_header) == 32, "a header has 32 bytes");
HILSIM_ASSERT(sizeof(struct hilsim_pose) == 96, "a record of poses has 96 bytes");
HILSIM_ASSERT(sizeof(struct hilsim_object) == 96, "a record of objects has 96 bytes");
HILSIM_ASSERT(offsetof(struct hilsim_header, time_ns) == 24, "the time is at byte 24");
HILSIM_ASSERT(offsetof(struct hilsim_pose, orientation) == 32, "the orientation is at byte 32");
HILSIM_ASSERT(offsetof(struct hilsim_object, name) == 20, "the name is at byte 20");

#endif
