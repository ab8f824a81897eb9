/*
 * Names that the program gives to types.
 */
#ifndef MADMPI_DATATYPE_NAME_H
#define MADMPI_DATATYPE_NAME_H

/* Predefined types have their own names again. */
void madmpi_type_forget_names(void);

#endif
